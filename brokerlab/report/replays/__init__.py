"""How pages of before draw their charts; goes with the last of them."""
