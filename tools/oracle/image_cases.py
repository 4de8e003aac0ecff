"""Images: resizes and their gradients, colours, and boxes."""

import numpy as np

from case_file import NUMPY, element, fixed
from element_types import FLOATS, REALS

CONVENTIONS = [
    ("", {"align_corners": False, "half_pixel_centers": False}),
    (", corners", {"align_corners": True, "half_pixel_centers": False}),
    (", half pixels", {"align_corners": False, "half_pixel_centers": True}),
]
# (name, images, size)
SIZES = [
    ("larger", (1, 2, 3, 2), (4, 7)),
    ("smaller", (2, 7, 5, 1), (3, 2)),
    ("a third", (1, 6, 9, 3), (2, 3)),
    ("the same", (1, 3, 2, 3), (3, 2)),
    ("one axis", (1, 3, 4, 2), (3, 7)),
    ("of one pixel", (2, 1, 1, 3), (3, 2)),
    ("to one pixel", (1, 4, 3, 2), (1, 1)),
    ("no images", (0, 3, 4, 2), (2, 2)),
    ("much larger", (1, 2, 2, 1), (9, 11)),
    ("much smaller", (1, 13, 11, 4), (2, 3)),
]
RESIZES = ("ResizeBilinear", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighbor")


def add(f):
    for op in RESIZES:
        _resizes(f, op)
        _resize_gradients(f, op)
        _resize_errors(f, op)
    _boxes(f)


def pixels(*shape, phase=0):
    """Whole numbers from 0 to 96."""
    return ((np.arange(np.prod(shape)) * 37 + phase) % 97).reshape(shape)


def _conventions(op):
    if op == "ResizeArea":
        return [(name, {"align_corners": attrs["align_corners"]}) for name, attrs in CONVENTIONS[:2]]
    return CONVENTIONS


def _resizes(f, op):
    nearest = op == "ResizeNearestNeighbor"
    for way, attrs in _conventions(op):
        for name, shape, size in SIZES:
            if op == "ResizeArea" and way and 1 in shape[1:3]:
                continue  # TensorFlow divides 0 by 0
            images = element(pixels(*shape) / 4 - 8, "float64" if nearest else "float32")
            options = {"terms": 20.0} if not nearest else {}
            f.raw(op, name + way, {"images": images, "size": fixed(size)}, FLOATS, attrs=attrs, gradient=nearest,
                  output_roles=["T" if nearest else "fixed"], tolerance_scale=1 if nearest else 2, **options)
        arguments = {"images": element(pixels(1, 3, 4, 3), "int64" if nearest else "int32"), "size": fixed((4, 2))}
        options = {} if nearest else {"tolerance_scale": 2, "output_roles": ["fixed"], "terms": 97.0}
        f.raw(op, "bytes" + way, arguments, REALS, attrs=attrs, **options)


def _resize_gradients(f, op):
    nearest = op == "ResizeNearestNeighbor"
    for way, attrs in _conventions(op):
        for name, shape, size in SIZES:
            dy = pixels(shape[0], *size, shape[3], phase=5) / 8 - 6
            if op == "ResizeArea":
                _area_gradient(f, name + way, shape, size, dy, attrs)
            elif nearest:
                f.raw("ResizeNearestNeighborGrad", name + way, {"grads": element(dy), "size": fixed(shape[1:3])}, FLOATS,
                      attrs=attrs, gradient=True, terms=12.0)
            else:
                grads = {"grads": fixed(dy, "float32"), "original_image": element(np.zeros(shape), "float32")}
                f.raw(op + "Grad", name + way, grads, FLOATS[1:], attrs=attrs, terms=12.0, tolerance_scale=4)
        # Weights of which the products are exact.
        if op == "ResizeArea":
            _area_gradient(f, "halved" + way, (1, 4, 8, 2), (2, 4), pixels(1, 2, 4, 2) / 8 - 6, attrs, FLOATS)
        dy = pixels(1, 4, 8, 2) / 8 - 6
        if op in ("ResizeBilinear", "ResizeBicubic"):
            grads = {"grads": fixed(dy, "float32"), "original_image": element(np.zeros((1, 2, 4, 2)))}
            way_is_exact = not attrs["align_corners"] and op == "ResizeBilinear"
            f.raw(op + "Grad", "twice as large" + way, grads, FLOATS, attrs=attrs, terms=12.0,
                  tolerance_scale=4 if way_is_exact else 2.0**32)


def _area_gradient(f, name, shape, size, dy, attrs, types=FLOATS[1:]):
    """TensorFlow has none: the transpose of the resize, which TensorFlow's kernel gives column by column."""
    import tensorflow as tf

    if attrs["align_corners"] and 1 in shape[1:3]:
        return
    count = shape[1] * shape[2]
    units = np.eye(count, dtype=np.float32).reshape(count, shape[1], shape[2], 1)
    columns = tf.raw_ops.ResizeArea(images=units, size=size, **attrs).numpy().astype(np.float64)
    dx = np.einsum("ihw,bhwc->bic", columns[..., 0], dy).reshape(shape)
    f.case(
        "ResizeAreaGrad",
        name,
        [fixed(dy, "float32"), element(np.zeros(shape))],
        [element(dx)],
        types,
        f"{NUMPY}: the transpose of TensorFlow's resize",
        attrs=attrs,
        terms=12.0,
        tolerance_scale=2.0**32 if types is FLOATS and attrs["align_corners"] else 4,
    )


def _resize_errors(f, op):
    attrs = dict(_conventions(op)[0][1])
    images = element(np.zeros((1, 2, 3, 1)))

    def refused(name, given, size, when, **more):
        f.error(op, name, [given, fixed(size)], when, attrs=attrs | more)

    refused("size 0", images, [0, 3], "run")
    refused("negative size", images, [2, -1], "run")
    refused("one number", images, [2], "build")
    refused("a scalar", images, 2, "build")
    refused("one image", element(np.zeros((2, 3, 1))), [2, 2], "build")
    refused("no rows", element(np.zeros((1, 0, 3, 1))), [2, 2], "build")
    refused("no columns", element(np.zeros((1, 2, 0, 1))), [2, 2], "build")
    refused("huge", element(np.zeros((4, 1, 1, 1))), [2**31 - 1, 2**31 - 1], "run")
    grad = op + "Grad"
    if op == "ResizeNearestNeighbor":
        f.error(grad, "size 0", [images, fixed([0, 3])], "run", attrs=attrs)
    else:
        f.error(grad, "other channels", [fixed(np.zeros((1, 2, 3, 2)), "float32"), images], "build", attrs=attrs)
        f.error(grad, "no pixels", [fixed(np.zeros((1, 2, 0, 1)), "float32"), images], "build", attrs=attrs)
    if "half_pixel_centers" in attrs:
        refused("both conventions", images, [2, 2], "build", align_corners=True, half_pixel_centers=True)


def _boxes(f):
    boxes = [
        [[0.1, 0.2, 0.7, 0.8], [-0.5, 0.3, 0.4, 1.5], [0.9, 0.1, 0.2, 0.3], [1.2, 0, 1.5, 1], [0.5, 0.5, 0.5, 0.5]],
        [[0, 0, 1, 1], [0.2, -9, 0.2, 9], [-1, -1, -0.5, 2], [0.4, 0.4, 0.6, 0.6], [-0.1, 0.9, 0.5, 0.95]],
    ]
    for channels in (1, 3, 4):
        images = element(np.full((2, 6, 7, channels), 0.25), "float32")
        arguments = {"images": images, "boxes": fixed(boxes, "float32")}
        f.raw("DrawBoundingBoxes", f"{channels} channels", arguments, FLOATS)
    many = np.linspace(0, 0.9, 12 * 4).reshape(1, 12, 4)[:, :, [0, 1, 2, 3]] + [0, 0, 0.1, 0.1]
    arguments = {"images": element(np.zeros((1, 16, 16, 3)), "float32"), "boxes": fixed(many, "float32")}
    f.raw("DrawBoundingBoxes", "more boxes than colours", arguments, FLOATS)
    f.raw("DrawBoundingBoxes", "no boxes", {"images": images, "boxes": fixed(np.zeros((2, 0, 4)), "float32")}, FLOATS)

    def refused(name, shape, of_boxes):
        f.error("DrawBoundingBoxes", name, [element(np.zeros(shape)), fixed(np.zeros(of_boxes), "float32")], "build")

    refused("two channels", (1, 2, 2, 2), (1, 1, 4))
    refused("other batch", (1, 2, 2, 3), (2, 1, 4))
    refused("three corners", (1, 2, 2, 3), (1, 1, 3))
    refused("boxes of one image", (1, 2, 2, 3), (1, 4))

    corners = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1], [0, 100, 1, 101]]
    scores = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]

    def chosen(name, corners, scores, most, threshold):
        arguments = {
            "boxes": fixed(np.reshape(corners, (-1, 4)), "float32"),
            "scores": fixed(scores, "float32"),
            "max_output_size": fixed(most),
        }
        f.raw("NonMaxSuppression", name, arguments, ["float32"], attrs={"iou_threshold": threshold})

    chosen("three of six", corners, scores, 3, 0.5)
    chosen("all that are apart", corners, scores, 30, 0.5)
    chosen("the first two", corners, scores, 2, 0.5)
    chosen("all", corners, scores, 6, 1.0)
    chosen("only what touches nothing", corners, scores, 6, 0.0)
    chosen("none", corners, scores, 0, 0.5)
    chosen("equal scores", corners, [0.5] * 6, 6, 0.5)
    chosen("scores that are no numbers", corners, [np.nan, 0.5, 1, np.nan, 0.2, 0.4], 6, 0.5)
    chosen("no boxes", [], [], 3, 0.5)
    chosen("boxes without an area", [[0, 0, 0, 1], [0, 0, 0, 1]], [0.5, 0.6], 3, 0.5)
    ways = {"iou_threshold": 0.5}
    some, numbers = fixed(np.zeros((3, 4)), "float32"), fixed(np.zeros(3), "float32")
    f.error("NonMaxSuppression", "negative size", [some, numbers, fixed(-1)], "run", attrs=ways)
    f.error("NonMaxSuppression", "scores of others", [some, fixed(np.zeros(2), "float32"), fixed(1)], "build", attrs=ways)
    f.error("NonMaxSuppression", "a vector of sizes", [some, numbers, fixed([1])], "build", attrs=ways)
    f.error("NonMaxSuppression", "threshold above 1", [some, numbers, fixed(1)], "build", attrs={"iou_threshold": 1.5})
    f.error("NonMaxSuppression", "three corners", [fixed(np.zeros((3, 3)), "float32"), numbers, fixed(1)], "build", attrs=ways)
