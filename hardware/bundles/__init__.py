"""Operator projects as one text: bundles of six strings in MultiKernelBench's form, built and run on a device."""
