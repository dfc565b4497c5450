/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API version of a translation unit and the thread safety that it requests. dat_ia_open()
 * passes these three values to the registry, which selects adapters by them.
 */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

#define DAT_VERSION_MAJOR 2
#define DAT_VERSION_MINOR 0

/* whether the program asks for a thread-safe provider; define it before including <dat2/udat.h> */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

/* Only whether it is defined counts, so the extensions are always declared. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS 1
#endif

#endif /* _UDAT_CONFIG_H_ */
