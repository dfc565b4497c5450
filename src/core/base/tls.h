// SPDX-License-Identifier: BSD-2-Clause
/* The model of the variables that each thread has of its own. */
#ifndef CORE_TLS_H
#define CORE_TLS_H

#include <features.h> /* defines __GLIBC__ */

/*
 * One load gives the offset of such a variable. glibc keeps room for those of libraries that are
 * loaded later; musl does not, and refuses such a library.
 */
#ifdef __GLIBC__
#define CORE_TLS_FAST __attribute__((tls_model("initial-exec")))
#else
#define CORE_TLS_FAST
#endif

#endif
