/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Place for user-level declarations of single vendors. There are none; the file exists because
 * programs include it.
 */
#ifndef _UDAT_VENDOR_SPECIFIC_H_
#define _UDAT_VENDOR_SPECIFIC_H_

#endif /* _UDAT_VENDOR_SPECIFIC_H_ */
