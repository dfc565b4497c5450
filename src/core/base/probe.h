// SPDX-License-Identifier: BSD-2-Clause
/*
 * Static probes for bpftrace(8), perf(1) and SystemTap, of the provider "opendat".
 * docs/observing.md lists them with their arguments; it and the test `probes` change along with
 * them.
 *
 * An unused probe is one nop. Its arguments are evaluated, so on the fast path they must be values
 * that the code has anyway: the number of an object has to be computed, its handle does not.
 * Without sys/sdt.h (-Dprobes=disabled) nothing remains, and the arguments are not evaluated.
 */
#ifndef CORE_PROBE_H
#define CORE_PROBE_H

#ifdef OPENDAT_PROBES
#include <sys/sdt.h>

#define CORE_PROBE2(name, a, b) DTRACE_PROBE2(opendat, name, a, b)
#define CORE_PROBE3(name, a, b, c) DTRACE_PROBE3(opendat, name, a, b, c)
#define CORE_PROBE4(name, a, b, c, d) DTRACE_PROBE4(opendat, name, a, b, c, d)
#else
#define CORE_PROBE2(name, a, b) ((void)0)
#define CORE_PROBE3(name, a, b, c) ((void)0)
#define CORE_PROBE4(name, a, b, c, d) ((void)0)
#endif

#endif
