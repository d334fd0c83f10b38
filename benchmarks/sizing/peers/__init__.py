"""The rules that systems deploy and the methods others have published, as sizers."""

from benchmarks.sizing.peers.registry import all_peers, peers, published, slow

__all__ = ["all_peers", "peers", "published", "slow"]
