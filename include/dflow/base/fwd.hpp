#pragma once

#include <cstddef>

namespace dflow {

enum class Code : int;
class Status;
class Error;
template <class T>
class StatusOr;

template <class... Ts>
struct TypeList;
template <std::size_t N>
struct FixedString;

template <class Signature>
class FunctionRef;
template <class Signature>
class UniqueFunction;

class ThreadPool;
class WorkStealingPool;
class InlinePool;
class ElasticPool;
class PoolEvent;

class Clock;
class RealClock;
class VirtualClock;

class ByteReader;
class ByteWriter;

class FileSystem;
class RandomAccessFile;
class WritableFile;

struct Philox;
struct PhiloxStream;

enum class CpuLevel : int;

}  // namespace dflow
