// SPDX-License-Identifier: BSD-2-Clause
/* Is the thread sanitizer in use? CORE_HAS_TSAN is defined if so. */
#ifndef CORE_TSAN_H
#define CORE_TSAN_H

#if defined(__SANITIZE_THREAD__)
#define CORE_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CORE_HAS_TSAN 1
#endif
#endif

#endif
