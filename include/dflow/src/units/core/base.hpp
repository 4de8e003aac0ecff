#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/base/checked.ipp>
#include <dflow/base/clock.ipp>
#include <dflow/base/cpu_features.ipp>
#include <dflow/base/files/atomic_file.ipp>
#include <dflow/base/files/base64.ipp>
#include <dflow/base/files/byte_reader.ipp>
#include <dflow/base/files/byte_source.ipp>
#include <dflow/base/files/byte_writer.ipp>
#include <dflow/base/files/crc32.ipp>
#include <dflow/base/files/crc32c.ipp>
#include <dflow/base/files/file_kind.ipp>
#include <dflow/base/files/file_system.ipp>
#include <dflow/base/files/matching_files.ipp>
#include <dflow/base/files/memory_file_system.ipp>
#include <dflow/base/files/read_ahead_source.ipp>
#include <dflow/base/files/scratch_file.ipp>
#include <dflow/base/lifetime.ipp>
#include <dflow/base/one_copy.ipp>
#include <dflow/base/printable.ipp>
#include <dflow/base/sha256.ipp>
#include <dflow/base/status.ipp>
#include <dflow/base/str_cat.ipp>
#include <dflow/base/system_seed.ipp>
#include <dflow/base/termination_signal.ipp>
#include <dflow/base/text/parse_number.ipp>
#include <dflow/base/text/string_hash.ipp>
#include <dflow/base/threads/completion.ipp>
#include <dflow/base/threads/cpu_quota.ipp>
#include <dflow/base/threads/elastic_pool.ipp>
#include <dflow/base/threads/inline_pool.ipp>
#include <dflow/base/threads/pool_event.ipp>
#include <dflow/base/threads/thread_pool.ipp>
#include <dflow/base/threads/wait_word.ipp>
#include <dflow/base/threads/work_stealing_pool.ipp>
