/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API version that a translation unit is compiled for, and the thread safety it asks
 * for. dat_ia_open() passes these three to the registry, which matches adapters by them.
 */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/*
 * Whether dat_ia_open() asks for a thread-safe provider. Define it as DAT_TRUE before
 * including <dat/udat.h> to override; deployed registry files mostly say "nonthreadsafe",
 * hence the default.
 */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif /* _UDAT_CONFIG_H_ */
