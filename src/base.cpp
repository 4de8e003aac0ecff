// The compiled form of base/.
#include <dflow/base/byte_reader.ipp>
#include <dflow/base/byte_writer.ipp>
#include <dflow/base/checked.ipp>
#include <dflow/base/clock.ipp>
#include <dflow/base/completion.ipp>
#include <dflow/base/cpu_features.ipp>
#include <dflow/base/cpu_quota.ipp>
#include <dflow/base/crc32c.ipp>
#include <dflow/base/elastic_pool.ipp>
#include <dflow/base/file_system.ipp>
#include <dflow/base/memory_file_system.ipp>
#include <dflow/base/pool_event.ipp>
#include <dflow/base/status.ipp>
#include <dflow/base/str_cat.ipp>
#include <dflow/base/system_seed.ipp>
#include <dflow/base/thread_pool.ipp>
#include <dflow/base/wait_word.ipp>
