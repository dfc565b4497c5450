/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For common declarations of vendors. There are none; the file exists because programs include it.
 */
#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

#endif /* _DAT_VENDOR_SPECIFIC_H_ */
