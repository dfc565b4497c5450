// SPDX-License-Identifier: BSD-2-Clause
/* The rig of the provider's unit tests (rig.h). */
#include "rig.h"

#include <netinet/in.h>

#include <dat/dat_registry.h>

#define REQUEST_LOOK_US 5000u

/* Defined in core/ia/provider.c, and called by a registry only. */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

#define STEP(call)                                                                                 \
	do {                                                                                       \
		DAT_RETURN step = (call);                                                          \
                                                                                                   \
		if (step != DAT_SUCCESS)                                                           \
			return step;                                                               \
	} while (0)

DAT_RETURN rig_open(struct rig *rig)
{
	DAT_PROVIDER_INFO info = {.ia_name = "verbs-fake",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};
	DAT_CONN_QUAL qual = rig->qual;

	memset(rig, 0, sizeof(*rig));
	rig->qual = qual;
	dat_provider_init(&info, "127.0.0.1");
	return core_ia_open_safe((DAT_NAME_PTR) "verbs-fake", 16, &rig->async, &rig->ia);
}

static DAT_RETURN make_ep(struct rig *rig, struct rig_ep *ep)
{
	const DAT_EVD_FLAGS dto = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG;

	STEP(core_evd_create(rig->ia, 256, DAT_HANDLE_NULL, dto, &ep->dto));
	STEP(core_evd_create(rig->ia, 16, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &ep->conn));
	return core_ep_create(rig->ia, rig->pz, ep->dto, ep->dto, ep->conn, NULL, &ep->ep);
}

DAT_RETURN rig_make(struct rig *rig)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig->memory};

	STEP(core_pz_create(rig->ia, &rig->pz));
	STEP(core_lmr_create(rig->ia, DAT_MEM_TYPE_VIRTUAL, region, RIG_LEN, rig->pz,
			     DAT_MEM_PRIV_ALL_FLAG, &rig->lmr, &rig->lkey, &rig->rkey, NULL, NULL));
	STEP(make_ep(rig, &rig->a));
	STEP(make_ep(rig, &rig->b));
	STEP(core_evd_create(rig->ia, 16, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &rig->requests));
	if (rig->qual)
		return core_psp_create(rig->ia, rig->qual, rig->requests, DAT_PSP_CONSUMER_FLAG,
				       &rig->psp);
	return core_psp_create_any(rig->ia, &rig->qual, rig->requests, DAT_PSP_CONSUMER_FLAG,
				   &rig->psp);
}

DAT_EVENT rig_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	memset(&event, 0, sizeof(event));
	if (core_evd_wait(evd, RIG_WAIT_US, 1, &event, &more) != DAT_SUCCESS)
		event.event_number = (DAT_EVENT_NUMBER)0;
	return event;
}

DAT_RETURN rig_ask(struct rig *rig, DAT_TIMEOUT timeout, const void *private_data, DAT_COUNT size)
{
	struct sockaddr_in to = {.sin_family = AF_INET};

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return core_ep_connect(rig->a.ep, (DAT_IA_ADDRESS_PTR)(void *)&to, rig->qual, timeout, size,
			       (DAT_PVOID)(uintptr_t)private_data, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_DEFAULT_FLAG);
}

DAT_CR_HANDLE rig_request(struct rig *rig)
{
	const DAT_EVENT event = rig_event(rig->requests);

	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

/* Waits for the request, or for the end of the attempt, which then gets an event with the reason.
 */
static DAT_RETURN wait_request(struct rig *rig, DAT_EVENT *event_out)
{
	DAT_EP_STATE state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	DAT_COUNT more;

	while (state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING) {
		STEP(core_ep_get_status(rig->a.ep, &state, NULL, NULL));
		if (core_evd_wait(rig->requests, REQUEST_LOOK_US, 1, event_out, &more) ==
		    DAT_SUCCESS)
			return DAT_SUCCESS;
	}
	return (DAT_RETURN)DAT_QUEUE_EMPTY;
}

DAT_RETURN rig_connect(struct rig *rig, const void *private_data, DAT_COUNT size)
{
	DAT_EVENT event;

	STEP(rig_ask(rig, RIG_WAIT_US / 2, private_data, size));
	STEP(wait_request(rig, &event));
	if (event.event_number != DAT_CONNECTION_REQUEST_EVENT)
		return (DAT_RETURN)DAT_QUEUE_EMPTY;
	return core_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, rig->b.ep, size,
			      (DAT_PVOID)(uintptr_t)private_data);
}

void rig_close(struct rig *rig)
{
	assert_int_equal(core_ia_close(rig->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(fake_live(), 0);
}

void rig_expect_conn(const struct rig_ep *ep, DAT_EVENT_NUMBER number)
{
	const DAT_EVENT event = rig_event(ep->conn);

	assert_int_equal(event.event_number, number);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep->ep);
}

void rig_expect_dto(const struct rig_ep *ep, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_EVENT event = rig_event(ep->dto);

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	assert_int_equal(event.event_data.dto_completion_event_data.status, status);
}

void rig_no_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_int_equal(DAT_GET_TYPE(core_evd_dequeue(evd, &event)), DAT_QUEUE_EMPTY);
}

static void link_both(struct rig *rig)
{
	assert_int_equal(rig_connect(rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig->a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig->b, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void rig_begin(struct rig *rig)
{
	assert_int_equal(rig_open(rig), DAT_SUCCESS);
	assert_int_equal(rig_make(rig), DAT_SUCCESS);
	link_both(rig);
}

void rig_part(struct rig *rig)
{
	assert_int_equal(core_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_conn(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void rig_reset(struct rig *rig)
{
	assert_int_equal(core_ep_reset(rig->a.ep), DAT_SUCCESS);
	assert_int_equal(core_ep_reset(rig->b.ep), DAT_SUCCESS);
}

void rig_again(struct rig *rig)
{
	rig_reset(rig);
	link_both(rig);
}

DAT_LMR_TRIPLET rig_seg(struct rig *rig, size_t offset, size_t len)
{
	return (DAT_LMR_TRIPLET){.lmr_context = rig->lkey,
				 .virtual_address = (uintptr_t)rig->memory + offset,
				 .segment_length = len};
}

DAT_RETURN rig_send(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(rig, 0, len);

	return core_ep_post_send(ep->ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie}, flags);
}

DAT_RETURN rig_recv(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(rig, RIG_LEN / 2, len);

	return core_ep_post_recv(ep->ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie},
				 DAT_COMPLETION_DEFAULT_FLAG);
}

void rig_answer(struct rig *rig)
{
	const uint64_t recv = 1, message = 2; /* cookies */

	assert_int_equal(rig_recv(rig, &rig->a, 8, recv), DAT_SUCCESS);
	assert_int_equal(rig_send(rig, &rig->b, 8, message, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	rig_expect_dto(&rig->a, recv, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig->b, message, DAT_DTO_SUCCESS);
}

DAT_RETURN rig_write(struct rig *rig, struct rig_ep *ep, size_t len, uint64_t cookie,
		     DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(rig, 0, len);
	DAT_RMR_TRIPLET to = {.rmr_context = rig->rkey,
			      .target_address = (uintptr_t)rig->memory + RIG_LEN / 2,
			      .segment_length = len};

	return core_ep_post_rdma_write(ep->ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie}, &to,
				       flags);
}

DAT_RETURN rig_read(struct rig *rig, struct rig_ep *ep, size_t to, size_t from, size_t len,
		    uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(rig, to, len);
	DAT_RMR_TRIPLET remote = {.rmr_context = rig->rkey,
				  .target_address = (uintptr_t)rig->memory + from,
				  .segment_length = len};

	return core_ep_post_rdma_read(ep->ep, 1, &seg, (DAT_DTO_COOKIE){.as_64 = cookie}, &remote,
				      flags);
}

DAT_RETURN rig_limit_reads(const struct rig_ep *ep, DAT_COUNT in, DAT_COUNT out)
{
	const DAT_EP_PARAM param = {.ep_attr = {.max_rdma_read_in = in, .max_rdma_read_out = out}};

	return core_ep_modify(ep->ep,
			      DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN |
				      DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT,
			      &param);
}

void rig_expect_foreign(struct rig *rig, DAT_COUNT asked, DAT_COUNT answered)
{
	DAT_CONNECTION_EVENT_DATA *shown;
	unsigned char data[255];
	DAT_CR_HANDLE cr;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i + 1);
	rig_part(rig);
	rig_reset(rig);
	fake_be_foreign(data, sizeof(data));
	assert_int_equal(rig_ask(rig, RIG_WAIT_US, NULL, 0), DAT_SUCCESS);
	cr = rig_request(rig);
	assert_int_equal(core_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(param.private_data_size, asked);
	assert_memory_equal(param.private_data, data, asked);
	assert_int_equal(core_cr_accept(cr, rig->b.ep, 0, NULL), DAT_SUCCESS);
	event = rig_event(rig->a.conn);
	shown = &event.event_data.connect_event_data;
	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(shown->private_data_size, answered);
	assert_memory_equal(shown->private_data, data, answered);
	rig_expect_conn(&rig->b, DAT_CONNECTION_EVENT_ESTABLISHED);
	fake_be_foreign(NULL, 0);
}
