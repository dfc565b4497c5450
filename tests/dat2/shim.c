// SPDX-License-Identifier: BSD-2-Clause
/* Calls with the parameters of DAT 1.2 (include/dat/udat.h). */
#include <dat/udat.h>
#include <pthread.h>

#undef dat_lmr_create
#undef dat_rmr_bind
#undef dat_cr_reject

/* The regions of the program by their context: dat_rmr_bind of DAT 2.0 wants the handle, too. */
#define REGIONS 65536
static struct {
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE handle;
} regions[REGIONS];
static unsigned int region_count;
static pthread_mutex_t region_lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(DAT_LMR_CONTEXT context, DAT_LMR_HANDLE handle)
{
	pthread_mutex_lock(&region_lock);
	regions[region_count % REGIONS].context = context;
	regions[region_count++ % REGIONS].handle = handle;
	pthread_mutex_unlock(&region_lock);
}

/* The latest region with that context: a key may have been used before. */
static DAT_LMR_HANDLE recall(DAT_LMR_CONTEXT context)
{
	DAT_LMR_HANDLE handle = DAT_HANDLE_NULL;

	pthread_mutex_lock(&region_lock);
	for (unsigned int i = 0; i < REGIONS && i < region_count; i++)
		if (regions[i].context == context)
			handle = regions[i].handle;
	pthread_mutex_unlock(&region_lock);
	return handle;
}

/* Moves the number of an argument down, if it is `first` or more. */
static DAT_RETURN unshift(DAT_RETURN ret, unsigned int first)
{
	DAT_RETURN arg = ret - (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);

	return arg <= DAT_INVALID_ARG10 - DAT_INVALID_ARG1 && arg + 1 >= first ? ret - 1 : ret;
}

DAT_RETURN shim_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			   DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv,
			   DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address)
{
	DAT_LMR_CONTEXT context = 0;
	DAT_RETURN ret =
		dat_lmr_create(ia, type, region, length, pz, priv, DAT_VA_TYPE_VA, lmr, &context,
			       rmr_context, registered_length, registered_address);

	if (ret == DAT_SUCCESS) {
		remember(context, *lmr);
		if (lmr_context)
			*lmr_context = context;
	}
	return unshift(ret, 8);
}

DAT_RETURN shim_rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *triplet,
			 DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	DAT_LMR_HANDLE lmr = triplet ? recall(triplet->lmr_context) : DAT_HANDLE_NULL;
	DAT_RETURN ret =
		dat_rmr_bind(rmr, lmr, triplet, priv, DAT_VA_TYPE_VA, ep, cookie, flags, context);

	return unshift(unshift(ret, 5), 3);
}

DAT_RETURN shim_cr_reject(DAT_CR_HANDLE cr)
{
	return dat_cr_reject(cr, 0, NULL);
}
