"""Convolutions: standard, transposed, depthwise and pointwise, in one to three dimensions.

A definition has a kind (`Conv2d`, `ConvTranspose3d`, ...), a shape of input and kernel, and settings. Inputs are square
(one size for all directions) or not; so are kernels.
"""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

#: Sizes by the number of directions and by whether the input is square. Channels are multiples of 4, for groups.
SIZES: dict[tuple[int, bool], CaseSizes] = {
    (1, True): CaseSizes(
        "batch in_channels out_channels length",
        public=(3, 4, 8, 48),
        hidden=((1, 8, 4, 61), (2, 4, 12, 33), (5, 12, 4, 20)),
        timing=(16, 32, 64, 2048),
    ),
    (2, True): CaseSizes(
        "batch in_channels out_channels size",
        public=(2, 4, 8, 20),
        hidden=((1, 8, 4, 23), (3, 4, 12, 19), (1, 12, 4, 29)),
        timing=(8, 32, 32, 64),
    ),
    (2, False): CaseSizes(
        "batch in_channels out_channels height width",
        public=(2, 4, 8, 16, 24),
        hidden=((1, 8, 4, 13, 29), (3, 4, 12, 17, 11), (1, 12, 4, 31, 15)),
        timing=(8, 32, 32, 48, 96),
    ),
    (3, True): CaseSizes(
        "batch in_channels out_channels size",
        public=(1, 4, 8, 10),
        hidden=((2, 8, 4, 7), (1, 4, 12, 9), (1, 12, 4, 11)),
        timing=(2, 16, 16, 24),
    ),
    (3, False): CaseSizes(
        "batch in_channels out_channels depth height width",
        public=(1, 4, 8, 8, 10, 12),
        hidden=((2, 8, 4, 7, 9, 8), (1, 4, 12, 9, 7, 13), (1, 12, 4, 10, 11, 7)),
        timing=(2, 16, 16, 16, 24, 32),
    ),
}
#: Sizes of the convolutions that keep the number of channels.
DEPTHWISE: dict[bool, CaseSizes] = {
    True: CaseSizes(
        "batch channels size", public=(2, 8, 20), hidden=((1, 3, 23), (3, 1, 17), (1, 13, 9)), timing=(8, 64, 128)
    ),
    False: CaseSizes(
        "batch channels height width",
        public=(2, 8, 16, 24),
        hidden=((1, 3, 13, 29), (3, 1, 17, 11), (1, 13, 31, 9)),
        timing=(8, 64, 96, 160),
    ),
}


def _shape(sizes: CaseSizes, directions: int) -> str:
    names = [name for name in sizes.names.split() if name != "out_channels"]
    return ", ".join([*names, *names[-1:] * (directions + 2 - len(names))])


def _definition(
    number: int, name: str, description: str, sizes: CaseSizes, directions: int, **rest: object
) -> TaskDefinition:
    inputs = {"x": f"torch.randn({_shape(sizes, directions)})"}
    return TaskDefinition(number, name, "convolution", description, sizes, inputs=inputs, **rest)  # type: ignore[arg-type]


def _convolution(
    number: int, name: str, directions: int, square: bool = True, *, transposed: bool = False, **settings: object
) -> TaskDefinition:
    """Define a standard or transposed convolution without bias; `settings` are arguments of the layer."""
    layer = f"Conv{'Transpose' if transposed else ''}{directions}d"
    keywords = ", ".join(f"{key}={key}" for key in settings if key != "kernel_size")
    kind = "transposed convolution" if transposed else "convolution"
    details = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in settings.items())
    return _definition(
        number,
        f"conv_{'transposed' if transposed else 'standard'}_{directions}d{name}",
        f"{directions}-D {kind} of {'a square' if square else 'an uneven'} input: {details}.",
        SIZES[directions, square],
        directions,
        forward="self.conv(x)",
        layers={
            "conv": f"nn.{layer}(in_channels, out_channels, kernel_size{', ' * bool(keywords)}{keywords}, bias=False)"
        },
        settings=settings,
        init=" ".join(["in_channels", "out_channels", *settings]),
    )


def _depthwise(number: int, name: str, square: bool, **settings: object) -> TaskDefinition:
    return _definition(
        number,
        f"conv_depthwise_2d_{name}",
        f"2-D convolution of each channel by itself: kernel size {settings['kernel_size']}.",
        DEPTHWISE[square],
        2,
        forward="self.conv(x)",
        layers={"conv": "nn.Conv2d(channels, channels, kernel_size, groups=channels, bias=False)"},
        settings=settings,
        init=" ".join(["channels", *settings]),
    )


DEFINITIONS = (
    _convolution(50, "_square_input_square_kernel_strided_padded", 2, kernel_size=11, stride=4, padding=2),
    _convolution(54, "_square_input_square_kernel", 3, kernel_size=3),
    _convolution(55, "_asymmetric_input_square_kernel", 2, False, kernel_size=3),
    _convolution(56, "_asymmetric_input_asymmetric_kernel", 2, False, kernel_size=(5, 7)),
    _convolution(57, "_square_input_square_kernel", 2, transposed=True, kernel_size=3),
    _convolution(58, "_asymmetric_input_asymmetric_kernel", 3, False, transposed=True, kernel_size=(3, 5, 4)),
    _convolution(59, "_asymmetric_input_square_kernel", 3, False, kernel_size=3),
    _convolution(60, "_square_input_asymmetric_kernel", 3, kernel_size=(3, 5, 4)),
    _convolution(61, "_square_input_square_kernel", 3, transposed=True, kernel_size=3),
    _convolution(62, "_square_input_asymmetric_kernel", 2, kernel_size=(5, 9)),
    _convolution(63, "_square_input_square_kernel", 2, kernel_size=3),
    _convolution(64, "", 1, transposed=True, kernel_size=3),
    _convolution(65, "_square_input_asymmetric_kernel", 2, transposed=True, kernel_size=(3, 7)),
    _convolution(66, "_asymmetric_input_asymmetric_kernel", 3, False, kernel_size=(3, 5, 4)),
    _convolution(67, "", 1, kernel_size=3),
    _convolution(68, "_square_input_asymmetric_kernel", 3, transposed=True, kernel_size=(3, 5, 5)),
    _convolution(69, "_asymmetric_input_asymmetric_kernel", 2, False, transposed=True, kernel_size=(3, 5)),
    _convolution(70, "_asymmetric_input_square_kernel", 3, False, transposed=True, kernel_size=3),
    _convolution(71, "_asymmetric_input_square_kernel", 2, False, transposed=True, kernel_size=3),
    _convolution(
        72,
        "_asymmetric_input_asymmetric_kernel_strided_padded_grouped",
        3,
        False,
        transposed=True,
        kernel_size=(3, 5, 7),
        stride=2,
        padding=(1, 2, 3),
        output_padding=1,
        groups=4,
    ),
    _convolution(
        73,
        "_asymmetric_input_square_kernel_strided_padded_grouped",
        3,
        False,
        transposed=True,
        kernel_size=3,
        stride=2,
        padding=1,
        groups=4,
    ),
    _convolution(74, "_dilated", 1, transposed=True, kernel_size=5, dilation=3),
    _convolution(
        75,
        "_asymmetric_input_asymmetric_kernel_strided_grouped_padded_dilated",
        2,
        False,
        transposed=True,
        kernel_size=(3, 5),
        stride=(2, 3),
        padding=(1, 2),
        dilation=(2, 1),
        groups=4,
    ),
    _convolution(76, "_dilated_strided", 1, kernel_size=3, stride=3, dilation=4),
    _convolution(
        77,
        "_square_input_square_kernel_padded_dilated_strided",
        3,
        transposed=True,
        kernel_size=3,
        stride=2,
        padding=1,
        dilation=2,
    ),
    _convolution(
        78,
        "_asymmetric_input_asymmetric_kernel_padded",
        2,
        False,
        transposed=True,
        kernel_size=(3, 7),
        padding=(1, 3),
    ),
    _convolution(
        79,
        "_asymmetric_input_square_kernel_padded_strided_dilated",
        1,
        transposed=True,
        kernel_size=3,
        stride=2,
        padding=1,
        dilation=2,
    ),
    _convolution(
        80,
        "_square_input_asymmetric_kernel_dilated_padded",
        2,
        kernel_size=(5, 9),
        padding=(2, 4),
        dilation=(2, 3),
    ),
    _convolution(
        81,
        "_asymmetric_input_square_kernel_dilated_padded_strided",
        2,
        False,
        transposed=True,
        kernel_size=3,
        stride=5,
        padding=1,
        dilation=2,
    ),
    _depthwise(82, "square_input_square_kernel", True, kernel_size=3),
    _depthwise(83, "square_input_asymmetric_kernel", True, kernel_size=(3, 1)),
    _depthwise(84, "asymmetric_input_square_kernel", False, kernel_size=3),
    _depthwise(85, "asymmetric_input_asymmetric_kernel", False, kernel_size=(3, 7)),
    _definition(
        86,
        "conv_depthwise_separable_2d",
        "2-D convolution of each channel by itself, then a 1x1 convolution over the channels.",
        SIZES[2, True],
        2,
        forward="self.pointwise(self.depthwise(x))",
        layers={
            "depthwise": "nn.Conv2d(in_channels, in_channels, kernel_size, padding=padding, groups=in_channels)",
            "pointwise": "nn.Conv2d(in_channels, out_channels, 1, bias=False)",
        },
        settings={"kernel_size": 3, "padding": 1},
        init="in_channels out_channels kernel_size padding",
    ),
    _definition(
        87,
        "conv_pointwise_2d",
        "1x1 convolution over the channels of an image.",
        SIZES[2, False],
        2,
        forward="self.conv(x)",
        layers={"conv": "nn.Conv2d(in_channels, out_channels, 1, bias=False)"},
        init="in_channels out_channels",
    ),
)
