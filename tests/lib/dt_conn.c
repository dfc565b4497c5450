// SPDX-License-Identifier: BSD-2-Clause
/*
 * The test harness, part two: endpoints, listeners and connections. Everything is made with the
 * public calls only, in the simplest way that the specification allows.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "dt.h"

#include <inttypes.h>

#include "copy_path.h"

#define DT_EVD_QLEN 256
#define DT_EVD_SPARE 16
#define DT_LISTEN_QLEN 64

/* --- endpoints --- */

static DAT_COUNT dt_min(DAT_COUNT a, DAT_COUNT b)
{
	return a < b ? a : b;
}

void dt_ep_attr(struct dt_ia *ia, DAT_EP_ATTR *attr_out)
{
	const DAT_IA_ATTR *limit = &ia->attr;

	*attr_out = (DAT_EP_ATTR){
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = limit->max_message_size,
		.max_rdma_size = limit->max_rdma_size,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = dt_min(32, limit->max_dto_per_ep),
		.max_request_dtos = dt_min(32, limit->max_dto_per_ep),
		.max_recv_iov = dt_min(4, limit->max_iov_segments_per_dto),
		.max_request_iov = dt_min(4, limit->max_iov_segments_per_dto),
		.max_rdma_read_in = dt_min(8, limit->max_rdma_read_per_ep_in),
		.max_rdma_read_out = dt_min(8, limit->max_rdma_read_per_ep_out),
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = dt_min(4, limit->max_iov_segments_per_rdma_read),
		.max_rdma_write_iov = dt_min(4, limit->max_iov_segments_per_rdma_write),
	};
}

static DAT_COUNT dt_evd_len(const DAT_EP_ATTR *attr, DAT_COUNT dtos)
{
	return attr ? dtos + DT_EVD_SPARE : DT_EVD_QLEN;
}

void dt_ep_create(struct dt_ia *ia, DAT_PZ_HANDLE pz, const DAT_EP_ATTR *attr, struct dt_ep *ep_out)
{
	const DAT_COUNT recv = dt_evd_len(attr, attr ? attr->max_recv_dtos : 0);
	const DAT_COUNT request = dt_evd_len(attr, attr ? attr->max_request_dtos : 0);

	memset(ep_out, 0, sizeof(*ep_out));
	ep_out->recv = dt_evd_create(ia, recv, DAT_EVD_DTO_FLAG);
	ep_out->request = dt_evd_create(ia, request, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	ep_out->conn = dt_evd_create(ia, DT_EVD_QLEN, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(ia->ia, pz, ep_out->recv, ep_out->request, ep_out->conn, attr,
			    &ep_out->ep));
}

void dt_ep_free(struct dt_ep *ep)
{
	if (ep->ep)
		dt_ok(dat_ep_free(ep->ep));
	if (ep->recv)
		dt_ok(dat_evd_free(ep->recv));
	if (ep->request)
		dt_ok(dat_evd_free(ep->request));
	if (ep->conn)
		dt_ok(dat_evd_free(ep->conn));
	memset(ep, 0, sizeof(*ep));
}

DAT_EP_STATE dt_ep_state(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state;

	dt_ok(dat_ep_get_status(ep, &state, NULL, NULL));
	return state;
}

DAT_RETURN dt_state_error(DAT_EP_STATE state)
{
	static const DAT_RETURN_SUBTYPE subtypes[] = {
		[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
		[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
		[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
		[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
		[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
		[DAT_EP_STATE_COMPLETION_PENDING] = DAT_INVALID_STATE_EP_COMPLPENDING,
		[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
		[DAT_EP_STATE_DISCONNECT_PENDING] = DAT_INVALID_STATE_EP_DISCPENDING,
		[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
	};

	assert_in_range(state, 0, COUNT_OF(subtypes) - 1);
	return DT_ERROR(DAT_INVALID_STATE, subtypes[state]);
}

/* --- connection set-up --- */

DAT_CONN_QUAL dt_unused_qual(void)
{
	static atomic_uint count;

	return UINT64_C(1) << 62 | (DAT_CONN_QUAL)getpid() << 24 | atomic_fetch_add(&count, 1);
}

void dt_listen(struct dt_ia *ia, struct dt_listener *listener_out)
{
	memset(listener_out, 0, sizeof(*listener_out));
	listener_out->evd = dt_evd_create(ia, DT_LISTEN_QLEN, DAT_EVD_CR_FLAG);
	listener_out->qual = dt_unused_qual();
	dt_ok(dat_psp_create(ia->ia, listener_out->qual, listener_out->evd, DAT_PSP_CONSUMER_FLAG,
			     &listener_out->psp));
}

void dt_unlisten(struct dt_listener *listener)
{
	if (listener->psp)
		dt_ok(dat_psp_free(listener->psp));
	if (listener->evd)
		dt_ok(dat_evd_free(listener->evd));
	memset(listener, 0, sizeof(*listener));
}

DAT_CR_HANDLE dt_request(struct dt_listener *listener)
{
	const DAT_EVENT event = dt_event(listener->evd);

	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	assert_non_null(event.event_data.cr_arrival_event_data.cr_handle);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

void dt_connect(struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_CONN_QUAL qual)
{
	dt_ok(dat_ep_connect(ep, ia->attr.ia_address_ptr, qual, DAT_TIMEOUT_INFINITE, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* --- expected events --- */

/*
 * How the present connection of each endpoint ended. A device may report DISCONNECTED in
 * place of BROKEN only to the side that sees no error (CONN-EVT-40). If a completion showed the
 * error, the event is BROKEN, in whatever order a test reads the two.
 */
enum {
	END_SHOWN = 1,	 /* a completion showed an error */
	END_EXCUSED = 2, /* DISCONNECTED was accepted in place of BROKEN */
};

#define ENDS 256u

static struct {
	pthread_mutex_t lock;
	struct {
		DAT_EP_HANDLE ep;
		unsigned flags;
	} of[ENDS]; /* indexed by handle; a collision replaces the older entry */
} ends = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Clears the flags that are not in `keep`, sets those in `more`; returns the result. */
static unsigned end_note(DAT_EP_HANDLE ep, unsigned keep, unsigned more)
{
	const size_t i = (uintptr_t)ep / 128 % ENDS;
	unsigned flags;

	pthread_mutex_lock(&ends.lock);
	flags = (ends.of[i].ep == ep ? ends.of[i].flags & keep : 0) | more;
	ends.of[i].ep = ep;
	ends.of[i].flags = flags;
	pthread_mutex_unlock(&ends.lock);
	return flags;
}

/* May a device report this event instead? CONN-EVT-40, EP-STATE-44. */
static bool is_as_good(DAT_EP_HANDLE ep, DAT_EVENT_NUMBER got, DAT_EVENT_NUMBER expected)
{
	return expected == DAT_CONNECTION_EVENT_BROKEN &&
	       got == DAT_CONNECTION_EVENT_DISCONNECTED && dt_is_verbs() &&
	       !(end_note(ep, END_SHOWN, END_EXCUSED) & END_SHOWN);
}

/* May an iWARP device report this status instead? */
static bool is_status_as_good(DAT_DTO_COMPLETION_STATUS got, DAT_DTO_COMPLETION_STATUS expected)
{
	if (!dt_is_iwarp() || !dt_is_verbs())
		return false;
	if (expected == DAT_DTO_ERR_REMOTE_ACCESS) /* LMR-USE-13 */
		return got != DAT_DTO_SUCCESS;
	/* DTO-116: done when the device had sent it, or not when the error ended the connection */
	return expected == DAT_DTO_ERR_REMOTE_RESPONDER &&
	       (got == DAT_DTO_SUCCESS || got == DAT_DTO_ERR_FLUSHED);
}

static void note_status(DAT_EP_HANDLE ep, DAT_DTO_COMPLETION_STATUS status)
{
	if (status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_FLUSHED)
		return;
	if (end_note(ep, END_SHOWN | END_EXCUSED, END_SHOWN) & END_EXCUSED) {
		print_error("DISCONNECTED although a completion has status %d\n", (int)status);
		fail();
	}
}

DAT_EVENT dt_expect_conn(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number)
{
	const DAT_EVENT event = dt_event(evd);

	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		end_note(ep, 0, 0);
	if (event.event_number != number && !is_as_good(ep, event.event_number, number)) {
		print_error("event 0x%05x instead of 0x%05x\n", (unsigned)event.event_number,
			    (unsigned)number);
		fail();
	}
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep);
	return event;
}

DAT_EVENT dt_expect_dto(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
			DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	const DAT_EVENT event = dt_event(evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	if ((dto->status != status && !is_status_as_good(dto->status, status)) ||
	    dto->user_cookie.as_64 != cookie) {
		print_error("completion of 0x%" PRIx64 " with status %d, not of 0x%" PRIx64
			    " with %d\n",
			    dto->user_cookie.as_64, (int)dto->status, cookie, (int)status);
		fail();
	}
	assert_ptr_equal(dto->ep_handle, ep);
	note_status(ep, dto->status);
	if (status == DAT_DTO_SUCCESS && len != DT_ANY_LEN)
		assert_true(dto->transfered_length == len);
	return event;
}

/* --- pairs --- */

void dt_ep_link(struct dt_ia *ia, struct dt_ep *a, struct dt_ep *b)
{
	struct dt_listener listener;

	dt_listen(ia, &listener);
	dt_connect(ia, a->ep, listener.qual);
	dt_ok(dat_cr_accept(dt_request(&listener), b->ep, 0, NULL));
	dt_expect_conn(a->conn, a->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(b->conn, b->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_unlisten(&listener);
}

void dt_map(const struct dt_ep *ep, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from)
{
	unsigned char *byte = (unsigned char *)(uintptr_t)to.virtual_address;
	const unsigned char before = *byte;

	to.segment_length = from.segment_length = 1;
	while (copy_path_awaits_mapping(ep->ep)) {
		dt_ok(dat_ep_post_rdma_read(ep->ep, 1, &to, dt_cookie(0), &from, 0));
		dt_expect_dto(ep->request, ep->ep, 0, DAT_DTO_SUCCESS, 1);
	}
	*byte = before;
}

void dt_pair_open_with(struct dt_pair *pair, const DAT_EP_ATTR *a, const DAT_EP_ATTR *b)
{
	memset(pair, 0, sizeof(*pair));
	dt_ia_open(&pair->ia);
	dt_ep_create(&pair->ia, pair->ia.pz, a, &pair->a);
	dt_ep_create(&pair->ia, pair->ia.pz, b, &pair->b);
	dt_ep_link(&pair->ia, &pair->a, &pair->b);
}

void dt_pair_open(struct dt_pair *pair)
{
	dt_pair_open_with(pair, NULL, NULL);
}

static bool dt_is_disconnected(void *arg)
{
	return dt_ep_state(arg) == DAT_EP_STATE_DISCONNECTED;
}

static void dt_ep_end(struct dt_ep *ep)
{
	if (!ep->ep || dt_ep_state(ep->ep) == DAT_EP_STATE_UNCONNECTED)
		return;
	dt_ok(dat_ep_disconnect(ep->ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_until(dt_is_disconnected, ep->ep);
}

void dt_pair_close(struct dt_pair *pair)
{
	dt_ep_end(&pair->a);
	dt_ep_end(&pair->b);
	dt_ep_free(&pair->a);
	dt_ep_free(&pair->b);
	dt_ia_close(&pair->ia);
}

int dt_pair_setup(void **state)
{
	static struct dt_pair pair;

	dt_pair_open(&pair);
	*state = &pair;
	return 0;
}

int dt_pair_teardown(void **state)
{
	dt_pair_close(*state);
	return 0;
}
