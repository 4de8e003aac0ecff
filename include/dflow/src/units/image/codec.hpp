#pragma once

/// The component `dflow::image`: ops, plain functions and CPU kernels of image files.

#include <dflow/image/decode_image.ipp>
#include <dflow/image/jpeg.ipp>
#include <dflow/image/png.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/image/codec/codec_kernels.ipp>
#include <dflow/kernels/cpu/image/codec/jpeg_codec.ipp>
#include <dflow/kernels/cpu/image/codec/png_codec.ipp>

namespace dflow {

using ImageCodecOps = TypeList<DecodeImage, DecodeJpeg, DecodePng, EncodeJpeg, EncodePng>;

DFLOW_INSTANTIATE_KERNELS(ImageCodecOps, Cpu);

}  // namespace dflow
