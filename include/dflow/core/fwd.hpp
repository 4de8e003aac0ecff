#pragma once

#include <dflow/base/fwd.hpp>

#include <cstdint>

namespace dflow {

class Half;
class BFloat16;
enum class DType : std::uint8_t;

class Shape;
class PartialShape;

class Allocator;
struct AllocatorStats;
class CpuAllocator;
class LimitAllocator;
class PoolAllocator;

class Buffer;
class BufferRef;
class AnyTensor;
template <class T, int Rank>
class TensorView;

struct DeviceName;

class RendezvousKey;
class Rendezvous;

class CancellationToken;
class CancellationSource;
class CancellationRegistration;

class Resource;
class ResourceContainer;

}  // namespace dflow
