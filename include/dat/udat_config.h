/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API version of a translation unit and the thread safety that it requests. dat_ia_open()
 * passes these three values to the registry, which selects adapters by them.
 */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

/*
 * The version of the API and the thread safety that dat_ia_open passes to the registry. The
 * registry selects the adapter by them, see DAT_PROVIDER_INFO.
 */
#define DAT_VERSION_MAJOR 1 /* the major version that the program is built for */
#define DAT_VERSION_MINOR 2 /* the minor version that the program is built for */

#ifndef DAT_THREADSAFE
/* whether the program asks for a thread-safe provider. To override it, define it as DAT_TRUE before
 * including <dat/udat.h>. The default is DAT_FALSE because most deployed registry files say
 * "nonthreadsafe". The adapters of OpenDAT that exist without dat.conf(5) accept both values, and
 * are thread safe in any case */
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif /* _UDAT_CONFIG_H_ */
