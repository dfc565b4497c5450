// SPDX-License-Identifier: BSD-2-Clause
/*
 * In place of <dat/udat.h>: lets a test of DAT 1.2 be compiled for DAT 2.0. Calls that have more
 * parameters there get those of 1.2, and their codes the numbers of 1.2, by the functions of
 * shim.c.
 */
#ifndef DAT2_TEST_UDAT_H
#define DAT2_TEST_UDAT_H

#include <netinet/in.h>

#include <dat2/udat.h>

#define OPENDAT_TEST_DAT2 1

/* Members that have another name in DAT 2.0. */
#define target_address virtual_address

/* Of DAT 1.2 alone; refused as any unknown value is. */
#define DAT_MEM_TYPE_SO_VIRTUAL 3

DAT_RETURN shim_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			   DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			   DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address);
DAT_RETURN shim_rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *triplet,
			 DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context);
DAT_RETURN shim_cr_reject(DAT_CR_HANDLE cr);
#define dat_lmr_create shim_lmr_create
#define dat_rmr_bind shim_rmr_bind
#define dat_cr_reject shim_cr_reject

#endif
