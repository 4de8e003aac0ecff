// The compiled form of base/.
#include <dflow/base/checked.ipp>
#include <dflow/base/clock.ipp>
#include <dflow/base/cpu_features.ipp>
#include <dflow/base/files/byte_reader.ipp>
#include <dflow/base/files/byte_writer.ipp>
#include <dflow/base/files/crc32c.ipp>
#include <dflow/base/files/file_system.ipp>
#include <dflow/base/files/memory_file_system.ipp>
#include <dflow/base/status.ipp>
#include <dflow/base/str_cat.ipp>
#include <dflow/base/system_seed.ipp>
#include <dflow/base/threads/completion.ipp>
#include <dflow/base/threads/cpu_quota.ipp>
#include <dflow/base/threads/elastic_pool.ipp>
#include <dflow/base/threads/pool_event.ipp>
#include <dflow/base/threads/thread_pool.ipp>
#include <dflow/base/threads/wait_word.ipp>
