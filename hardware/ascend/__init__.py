"""An Ascend NPU through CANN and torch_npu. Written from documentation; it has not been run on hardware yet."""
