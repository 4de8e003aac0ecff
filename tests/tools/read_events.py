#!/usr/bin/env python3
"""Reads the event files of a folder with TensorBoard's own loader.

Usage: tests/tools/read_events.py FOLDER
Prints what TensorBoard would show, a line a value, in the order of tags and steps. Exits 77 where TensorBoard is not
installed, 1 if it does not read all of it.
"""

import io
import sys

try:
    from PIL import Image
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
    from tensorboard.compat.proto import config_pb2, graph_pb2
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ALL = {
    event_accumulator.SCALARS: 0,
    event_accumulator.HISTOGRAMS: 0,
    event_accumulator.COMPRESSED_HISTOGRAMS: 0,
    event_accumulator.IMAGES: 0,
    event_accumulator.AUDIO: 0,
    event_accumulator.TENSORS: 0,
}


def pixels_of(png):
    return list(Image.open(io.BytesIO(png)).tobytes())


def print_hyperparameters(content):
    plugin = plugin_data_pb2.HParamsPluginData.FromString(content)
    experiment, start, end = plugin.experiment, plugin.session_start_info, plugin.session_end_info
    print("  compares", [(info.name, info.type) for info in experiment.hparam_infos],
          [info.name.tag for info in experiment.metric_infos])
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in sorted(start.hparams.items())}
    print("  has", values, start.group_name, start.start_time_secs, end.status, end.end_time_secs)


def print_values(folder):
    """As loaders of old files see them: scalars, histograms, images and sounds by their own fields."""
    events = event_accumulator.EventAccumulator(folder, size_guidance=ALL)
    events.Reload()
    tags = events.Tags()
    print("version", events.file_version)
    for tag in sorted(tags[event_accumulator.SCALARS]):
        print("scalar", tag, [(value.step, value.value) for value in events.Scalars(tag)])
    for tag in sorted(tags[event_accumulator.HISTOGRAMS]):
        for event in events.Histograms(tag):
            value = event.histogram_value
            print("histogram", tag, event.step, value.min, value.max, value.num, value.sum, value.sum_squares,
                  len(value.bucket_limit), sum(value.bucket))
    for tag in sorted(tags[event_accumulator.IMAGES]):
        for value in events.Images(tag):
            print("image", tag, value.step, value.height, value.width, pixels_of(value.encoded_image_string))
    for tag in sorted(tags[event_accumulator.AUDIO]):
        for value in events.Audio(tag):
            print("audio", tag, value.step, value.sample_rate, value.length_frames, value.content_type,
                  len(value.encoded_audio_string))
    for tag in sorted(tags[event_accumulator.TENSORS]):
        metadata = events.SummaryMetadata(tag)
        plugin = metadata.plugin_data.plugin_name
        for event in events.Tensors(tag):
            print("tensor", tag, event.step, plugin, tensor_util.make_ndarray(event.tensor_proto).tolist())
        if plugin == "hparams":
            print_hyperparameters(metadata.plugin_data.content)
    graph = graph_pb2.GraphDef.FromString(events.Graph().SerializeToString())
    for node in graph.node:
        shapes = [[dim.size for dim in shape.dim] for shape in node.attr["_output_shapes"].list.shape]
        print("node", node.name, node.op, list(node.input), node.device, sorted(node.attr), shapes)
    for tag in sorted(tags[event_accumulator.RUN_METADATA]):
        metadata = config_pb2.RunMetadata.FromString(events.RunMetadata(tag).SerializeToString())
        for device in metadata.step_stats.dev_stats:
            for node in device.node_stats:
                print("ran", tag, device.device, node.node_name, node.all_start_micros, node.all_end_rel_micros)


def print_plugins(folder):
    """As TensorBoard's pages see them: everything is a tensor of a plugin."""
    events = plugin_event_accumulator.EventAccumulator(folder)
    events.Reload()
    tags = events.Tags()[plugin_event_accumulator.TENSORS]
    for tag in sorted(tags):
        print("plugin", tag, events.SummaryMetadata(tag).plugin_data.plugin_name, len(events.Tensors(tag)))


print_values(sys.argv[1])
print_plugins(sys.argv[1])
