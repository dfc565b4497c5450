/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For user-level declarations of vendors. There are none; the file exists because programs
 * include it.
 */
#ifndef _UDAT_VENDOR_SPECIFIC_H_
#define _UDAT_VENDOR_SPECIFIC_H_

#endif /* _UDAT_VENDOR_SPECIFIC_H_ */
