"""The rules that systems deploy and the methods others have published, as sizers."""

from brokerlab.estimators.sizing.peers.registry import peers, published, slow

__all__ = ["peers", "published", "slow"]
