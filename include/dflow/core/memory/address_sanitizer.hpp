#pragma once

/// DFLOW_HAS_ADDRESS_SANITIZER is 1 in a unit that is compiled with AddressSanitizer, and 0 elsewhere.
#if defined(__SANITIZE_ADDRESS__)
#define DFLOW_HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DFLOW_HAS_ADDRESS_SANITIZER 1
#endif
#endif
#if !defined(DFLOW_HAS_ADDRESS_SANITIZER)
#define DFLOW_HAS_ADDRESS_SANITIZER 0
#endif
