/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Place for common declarations of single vendors. There are none; the file exists because
 * programs include it.
 */
#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

#endif /* _DAT_VENDOR_SPECIFIC_H_ */
