// SPDX-License-Identifier: BSD-2-Clause
/* side.h, for the generation of <dat/udat.h>. */
#include <dat/udat.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "side.h"

#ifdef OPENDAT_TEST_DAT2
#include <dat2/dat_ib_extensions.h>
#undef dat_cr_reject
#define SIDE_PRIVILEGES (DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
#else
#define SIDE_PRIVILEGES DAT_MEM_PRIV_ALL_FLAG
#endif

#define WAIT_US 20000000u
#define QUEUE 16

struct side {
	uint8_t bytes[SIDE_SIZE];
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evds[SIDE_QUEUES];
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local_key;
	DAT_RMR_CONTEXT key;
	DAT_RMR_HANDLE rmr;
	DAT_PSP_HANDLE psp;
};

static struct side *side_open(void)
{
	static const DAT_EVD_FLAGS flags[SIDE_QUEUES] = {
		[SIDE_CONN] = DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
		[SIDE_REQUEST] = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
		[SIDE_RECV] = DAT_EVD_DTO_FLAG,
	};
	char name[] = "soft-lo", *adapter = getenv("DAT_TEST_ADAPTER");
	struct side *side = calloc(1, sizeof(*side));
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_REGION_DESCRIPTION region;

	must(side);
	must(dat_ia_open(adapter ? adapter : name, QUEUE, &async, &side->ia) == DAT_SUCCESS);
	must(dat_ia_query(side->ia, NULL, DAT_IA_FIELD_ALL, &side->attr, 0, NULL) == DAT_SUCCESS);
	must(dat_pz_create(side->ia, &side->pz) == DAT_SUCCESS);
	for (int i = 0; i < SIDE_QUEUES; i++)
		must(dat_evd_create(side->ia, QUEUE, DAT_HANDLE_NULL, flags[i], &side->evds[i]) ==
		     DAT_SUCCESS);
	must(dat_ep_create(side->ia, side->pz, side->evds[SIDE_RECV], side->evds[SIDE_REQUEST],
			   side->evds[SIDE_CONN], NULL, &side->ep) == DAT_SUCCESS);
	region.for_va = side->bytes;
	must(dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, SIDE_SIZE, side->pz,
			    SIDE_PRIVILEGES, &side->lmr, &side->local_key, &side->key, NULL,
			    NULL) == DAT_SUCCESS);
	return side;
}

/* A region that a peer's message has invalidated can be freed, too. */
static void side_close(struct side *side)
{
	if (side->rmr)
		must(dat_rmr_free(side->rmr) == DAT_SUCCESS);
	must(dat_ep_free(side->ep) == DAT_SUCCESS);
	must(dat_lmr_free(side->lmr) == DAT_SUCCESS);
	must(dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
	free(side);
}

static bool side_is_iwarp_device(struct side *side)
{
	for (DAT_COUNT i = 0; i < side->attr.num_transport_attr; i++)
		if (!strcmp(side->attr.transport_attr[i].name, "link"))
			return !strcmp(side->attr.transport_attr[i].value, "iWARP");
	return false;
}

static uint8_t *side_bytes(struct side *side)
{
	return side->bytes;
}

static uint32_t side_key(struct side *side)
{
	return side->key;
}

static struct side_event side_wait(struct side *side, enum side_queue queue)
{
	struct side_event found = {0};
	DAT_EVENT event;
	DAT_COUNT more;

	must(dat_evd_wait(side->evds[queue], WAIT_US, 1, &event, &more) == DAT_SUCCESS);
	found.number = event.event_number;
	switch (found.number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		found.cr = event.event_data.cr_arrival_event_data.cr_handle;
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		found.status = (int)event.event_data.rmr_completion_event_data.status;
		break;
#ifdef OPENDAT_TEST_DAT2
	case DAT_IB_DTO_EVENT:
#endif
	case DAT_DTO_COMPLETION_EVENT:
		found.status = (int)event.event_data.dto_completion_event_data.status;
		found.length = event.event_data.dto_completion_event_data.transfered_length;
		break;
	default:
		found.length = (uint64_t)event.event_data.connect_event_data.private_data_size;
	}
	return found;
}

static uint32_t side_bind(struct side *side)
{
	const DAT_LMR_TRIPLET piece = {.lmr_context = side->local_key,
				       .virtual_address = (DAT_VADDR)(uintptr_t)side->bytes,
				       .segment_length = SIDE_SIZE};
	const DAT_RMR_COOKIE cookie = {.as_64 = 0};
	struct side_event event;
	DAT_RMR_CONTEXT key;

	must(dat_rmr_create(side->pz, &side->rmr) == DAT_SUCCESS);
	must(dat_rmr_bind(side->rmr, &piece, DAT_MEM_PRIV_ALL_FLAG, side->ep, cookie, 0, &key) ==
	     DAT_SUCCESS);
	event = side_wait(side, SIDE_REQUEST);
	must(event.number == DAT_RMR_BIND_COMPLETION_EVENT && !event.status);
	return key;
}

/* --- connections --- */

static uint64_t side_listen(struct side *side)
{
	DAT_CONN_QUAL qualifier = 0;

	must(dat_psp_create_any(side->ia, &qualifier, side->evds[SIDE_CONN], DAT_PSP_CONSUMER_FLAG,
				&side->psp) == DAT_SUCCESS);
	return qualifier;
}

static bool side_is_in_use(struct side *side, uint64_t qualifier)
{
	DAT_PSP_HANDLE psp;
	DAT_RETURN ret = dat_psp_create(side->ia, qualifier, side->evds[SIDE_CONN],
					DAT_PSP_CONSUMER_FLAG, &psp);

	return DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE;
}

static void side_connect(struct side *side, uint64_t qualifier)
{
	must(dat_ep_connect(side->ep, side->attr.ia_address_ptr, qualifier, WAIT_US, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) == DAT_SUCCESS);
}

static void side_accept(struct side *side, void *cr)
{
	must(dat_cr_accept(cr, side->ep, 0, NULL) == DAT_SUCCESS);
}

static void side_reject(struct side *side, void *cr)
{
	(void)side;
#ifdef OPENDAT_TEST_DAT2
	must(dat_cr_reject(cr, 5, "never") == DAT_SUCCESS);
#else
	must(dat_cr_reject(cr) == DAT_SUCCESS);
#endif
}

static void side_reset(struct side *side)
{
	must(dat_ep_reset(side->ep) == DAT_SUCCESS);
}

/* --- transfers --- */

static unsigned int side_post(struct side *side, const struct side_post *post)
{
	DAT_LMR_TRIPLET local = {.lmr_context = post->local_key ? post->local_key : side->local_key,
				 .virtual_address = (DAT_VADDR)(uintptr_t)side->bytes + post->at,
				 .segment_length = post->length};
	DAT_RMR_TRIPLET remote = {.rmr_context = post->key,
				  .target_address = post->address,
				  .segment_length = post->length};
	const DAT_DTO_COOKIE cookie = {.as_64 = 0};

	switch (post->op) {
	case SIDE_SEND:
		return dat_ep_post_send(side->ep, 1, &local, cookie, 0);
	case SIDE_RECEIVE:
		return dat_ep_post_recv(side->ep, 1, &local, cookie, 0);
	case SIDE_WRITE:
		return dat_ep_post_rdma_write(side->ep, 1, &local, cookie, &remote, 0);
	case SIDE_READ:
		return dat_ep_post_rdma_read(side->ep, 1, &local, cookie, &remote, 0);
#ifdef OPENDAT_TEST_DAT2
	case SIDE_WRITE_IMMEDIATE:
		return dat_ib_post_rdma_write_immed(side->ep, 1, &local, cookie, &remote, 7, 0);
	case SIDE_FETCH_ADD:
		return dat_ib_post_fetch_and_add(side->ep, 3, &local, cookie, &remote, 0);
	case SIDE_SEND_INVALIDATE:
		return dat_ep_post_send_with_invalidate(side->ep, 1, &local, cookie, 0, DAT_TRUE,
							post->key);
#endif
	default:
		must(false);
		return 0;
	}
}

/* --- handles of another side --- */

static uint32_t side_local_key(struct side *side)
{
	return side->local_key;
}

/* The members that DAT 1.2 has, too. */
static void side_provider(struct side *side, uint64_t values[SIDE_PROVIDER_VALUES])
{
	DAT_PROVIDER_ATTR attr;

	must(dat_ia_query(side->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr) == DAT_SUCCESS);
	memcpy(values,
	       (const uint64_t[SIDE_PROVIDER_VALUES]){
		       attr.completion_flags_supported,
		       attr.lmr_mem_types_supported,
		       attr.ep_creator,
		       attr.iov_ownership_on_return,
		       (uint64_t)attr.max_private_data_size,
		       attr.supports_multipath,
		       attr.pz_support,
		       (uint64_t)attr.optimal_buffer_alignment,
		       attr.srq_supported,
		       (uint64_t)attr.srq_watermarks_supported,
		       attr.srq_ep_pz_difference_supported,
		       (uint64_t)attr.srq_info_supported,
		       (uint64_t)attr.ep_recv_info_supported,
		       attr.lmr_sync_req,
		       attr.dto_async_return_guaranteed,
		       attr.rdma_write_for_rdma_read_req,
	       },
	       SIDE_PROVIDER_VALUES * sizeof(uint64_t));
}

static void side_handles(struct side *side, void *handles[SIDE_OBJECTS])
{
	handles[SIDE_IA] = side->ia;
	handles[SIDE_PZ] = side->pz;
	handles[SIDE_EVD] = side->evds[SIDE_RECV];
	handles[SIDE_EP] = side->ep;
	handles[SIDE_LMR] = side->lmr;
	handles[SIDE_RMR] = side->rmr;
	handles[SIDE_PSP] = side->psp;
}

/* Ends the function with the name of the call if that does not refuse a handle. */
#define REFUSES(call)                                                                              \
	do {                                                                                       \
		if (DAT_GET_TYPE(call) != DAT_INVALID_HANDLE)                                      \
			return #call;                                                              \
	} while (0)

static const char *takes_queues(struct side *side, void *const handles[SIDE_OBJECTS])
{
	DAT_EVD_HANDLE evd = handles[SIDE_EVD], own = side->evds[SIDE_RECV];
	DAT_CONN_QUAL qualifier;
	DAT_EVD_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	DAT_COUNT more;

	REFUSES(dat_evd_create(handles[SIDE_IA], 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	evd = handles[SIDE_EVD];
	REFUSES(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	REFUSES(dat_evd_dequeue(evd, &event));
	REFUSES(dat_evd_wait(evd, 0, 1, &event, &more));
	REFUSES(dat_evd_resize(evd, 2 * QUEUE));
	REFUSES(dat_evd_free(evd));
	REFUSES(dat_psp_create_any(side->ia, &qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	REFUSES(dat_ep_create(side->ia, side->pz, evd, own, own, NULL, &ep));
	REFUSES(dat_ep_create(side->ia, side->pz, own, evd, own, NULL, &ep));
	REFUSES(dat_ep_create(side->ia, handles[SIDE_PZ], own, own, own, NULL, &ep));
	return NULL;
}

static const char *takes_memory(struct side *side, void *const handles[SIDE_OBJECTS])
{
	DAT_REGION_DESCRIPTION region = {.for_lmr_handle = handles[SIDE_LMR]};
	DAT_LMR_CONTEXT local_key;
	DAT_RMR_CONTEXT key;
	DAT_LMR_PARAM lmr_param;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_PZ_HANDLE pz;

	REFUSES(dat_pz_create(handles[SIDE_IA], &pz));
	REFUSES(dat_pz_free(handles[SIDE_PZ]));
	REFUSES(dat_lmr_query(handles[SIDE_LMR], DAT_LMR_FIELD_ALL, &lmr_param));
	REFUSES(dat_lmr_create(side->ia, DAT_MEM_TYPE_LMR, region, SIDE_SIZE, side->pz,
			       DAT_MEM_PRIV_ALL_FLAG, &lmr, &local_key, &key, NULL, NULL));
	region.for_va = side->bytes;
	REFUSES(dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, SIDE_SIZE, handles[SIDE_PZ],
			       DAT_MEM_PRIV_ALL_FLAG, &lmr, &local_key, &key, NULL, NULL));
	REFUSES(dat_lmr_free(handles[SIDE_LMR]));
	REFUSES(dat_rmr_create(handles[SIDE_PZ], &rmr));
	REFUSES(dat_rmr_free(handles[SIDE_RMR]));
	return NULL;
}

static const char *side_takes(struct side *side, void *const handles[SIDE_OBJECTS])
{
	DAT_LMR_TRIPLET local = {.lmr_context = side->local_key};
	const DAT_DTO_COOKIE cookie = {.as_64 = 0};
	DAT_EP_HANDLE ep = handles[SIDE_EP];
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE opened;
	const char *taken;
	DAT_EP_STATE state;
	DAT_IA_ATTR attr;

	/* D2-OPEN-06 */
	async = handles[SIDE_EVD];
	if (dat_ia_open(side->attr.adapter_name, QUEUE, &async, &opened) !=
	    (DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_ASYNC))
		return "dat_ia_open";
	REFUSES(dat_ia_query(handles[SIDE_IA], NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	REFUSES(dat_ep_get_status(ep, &state, NULL, NULL));
	REFUSES(dat_ep_post_send(ep, 1, &local, cookie, 0));
	REFUSES(dat_ep_post_recv(ep, 1, &local, cookie, 0));
	REFUSES(dat_ep_dup_connect(side->ep, ep, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT));
	REFUSES(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	REFUSES(dat_ep_reset(ep));
	REFUSES(dat_ep_free(ep));
	REFUSES(dat_psp_free(handles[SIDE_PSP]));
	taken = takes_queues(side, handles);
	if (!taken)
		taken = takes_memory(side, handles);
	if (taken)
		return taken;
#ifdef OPENDAT_TEST_DAT2
	{
		DAT_RMR_TRIPLET remote = {.segment_length = 8};

		/* D2-EXT-06 */
		REFUSES(dat_ib_post_fetch_and_add(ep, 1, &local, cookie, &remote, 0));
	}
#endif
	REFUSES(dat_ia_close(handles[SIDE_IA], DAT_CLOSE_ABRUPT_FLAG));
	return NULL;
}

extern const struct side_calls side_calls;
__attribute__((visibility("default"))) const struct side_calls side_calls = {
	.open = side_open,
	.close = side_close,
	.is_iwarp_device = side_is_iwarp_device,
	.bytes = side_bytes,
	.key = side_key,
	.bind = side_bind,
	.listen = side_listen,
	.is_in_use = side_is_in_use,
	.connect = side_connect,
	.accept = side_accept,
	.reject = side_reject,
	.reset = side_reset,
	.post = side_post,
	.wait = side_wait,
	.local_key = side_local_key,
	.provider = side_provider,
	.handles = side_handles,
	.takes = side_takes,
};
