"""The third party's package has tests of its own, which run where it is installed."""

collect_ignore_glob = ["third_party/*"]
