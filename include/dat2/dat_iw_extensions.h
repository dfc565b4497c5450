/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iWARP extensions of DAT 2.0: service points and connections on sockets of the program. No
 * adapter of OpenDAT has them. The numbers are those of other operations in dat_ib_extensions.h, so
 * a source file includes one of the two headers.
 */
#ifndef _UDAT_H_
#include <dat2/udat.h>
#endif

#ifndef _DAT_IW_EXTENSIONS_H_
#define _DAT_IW_EXTENSIONS_H_

/* Operation numbers of dat_extension_op. Events begin at DAT_IW_EXTENSION_RANGE_BASE. */
typedef enum dat_iw_op {
	DAT_IW_SSP_CREATE = 0,
	DAT_IW_SSP_FREE = 1,
	DAT_IW_SSP_QUERY = 2,
	DAT_IW_SSP_SOCKET_CONNECT = 3,
} DAT_IW_OP;

#endif /* _DAT_IW_EXTENSIONS_H_ */
