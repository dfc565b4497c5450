/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API version of a translation unit and the thread safety that it requests. dat_ia_open()
 * passes these three values to the registry, which selects adapters by them.
 */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/*
 * Whether dat_ia_open() requests a thread-safe provider. To override it, define it as DAT_TRUE
 * before including <dat/udat.h>. The default is DAT_FALSE because most deployed registry files say
 * "nonthreadsafe".
 */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif /* _UDAT_CONFIG_H_ */
