// SPDX-License-Identifier: BSD-2-Clause
/* The mock transport (mock.h). */
#include "mock.h"

#include <errno.h>

#include "core/base/transport_stubs.h"
#include "core/ep/ep_fast.h"
#include "core/event/evd_queue.h"

struct mock mock;

static int mock_result(const char *slot)
{
	return mock.failing && !strcmp(mock.failing, slot) ? mock.error : 0;
}

static int mock_ia_open(struct core_ia *ia)
{
	static const DAT_COUNT max = 1000;

	if (mock_result("ia_open"))
		return mock.error;
	mock.adapters++;
	mock.ia = ia;
	ia->address.in.sin_family = AF_INET;
	ia->attr.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->address.sa;
	ia->attr.max_dto_per_ep = max;
	ia->attr.max_evd_qlen = max;
	ia->attr.max_iov_segments_per_dto = 8;
	ia->attr.max_iov_segments_per_rdma_read = 8;
	ia->attr.max_iov_segments_per_rdma_write = 8;
	ia->attr.max_rdma_read_per_ep_in = 8;
	ia->attr.max_rdma_read_per_ep_out = 8;
	ia->attr.max_message_size = 1u << 31;
	ia->attr.max_rdma_size = 1u << 31;
	ia->attr.max_lmr_block_size = 1u << 31;
	ia->attr.max_srqs = MOCK_OBJECTS;
	ia->attr.max_ep_per_srq = MOCK_OBJECTS;
	ia->attr.max_recv_per_srq = max;
	ia->attr.max_rmrs = MOCK_OBJECTS;
	ia->provider_attr.max_private_data_size = 64;
	return 0;
}

static void mock_ia_close(struct core_ia *ia)
{
	(void)ia;
	mock.adapters--;
}

static int mock_progress(struct core_ia *ia)
{
	(void)ia;
	mock.progresses++;
	if (mock.on_progress)
		mock.on_progress();
	return mock.progress_finds;
}

static inline enum transport_poll transport_poll(struct core_handle *cell, DAT_EVENT *event)
{
	mock.polls++;
	return mock.on_poll ? mock.on_poll(cell->object, event) : TRANSPORT_POLL_SLOW;
}

static int mock_arm(struct core_ia *ia)
{
	mock.arms++;
	if (mock.on_arm)
		mock.on_arm();
	mock.sleepers_armed = ia->sleepers;
	if (!mock.arm_finds)
		return 0;
	mock.arm_finds--;
	return 1;
}

static int mock_pz_create(struct core_ia *ia, struct core_pz *pz)
{
	(void)ia;
	(void)pz;
	if (mock_result("pz_create"))
		return mock.error;
	mock.zones++;
	return 0;
}

static void mock_pz_destroy(struct core_ia *ia, struct core_pz *pz)
{
	(void)ia;
	(void)pz;
	mock.zones--;
}

static int mock_lmr_create(struct core_ia *ia, struct core_lmr *lmr)
{
	static uint32_t last_key = 100;

	(void)ia;
	if (mock_result("lmr_create"))
		return mock.error;
	lmr->rkey = ++last_key;
	mock.registered++;
	return 0;
}

static void mock_lmr_destroy(struct core_ia *ia, struct core_lmr *lmr)
{
	(void)ia;
	(void)lmr;
	mock.registered--;
}

static int mock_ep_create(struct core_ep *ep)
{
	(void)ep;
	if (mock_result("ep_create"))
		return mock.error;
	mock.endpoints++;
	return 0;
}

static void mock_ep_nothing(struct core_ep *ep)
{
	(void)ep;
}

static void mock_ep_destroy(struct core_ep *ep)
{
	(void)ep;
	mock.endpoints--;
}

static int mock_listen(struct core_ia *ia, struct core_ref sp, DAT_CONN_QUAL *qual, void **listener)
{
	(void)ia;
	mock.sp = sp;
	if (mock_result("listen"))
		return mock.error;
	if (!*qual)
		*qual = 2000;
	mock.listeners++;
	*listener = &mock;
	if (mock.on_listen)
		mock.on_listen(sp);
	return 0;
}

static void mock_unlisten(struct core_ia *ia, void *listener)
{
	(void)ia;
	(void)listener;
	mock.listeners--;
}

static int mock_connect(struct core_ep *ep, const union core_sockaddr *address, DAT_CONN_QUAL qual,
			DAT_TIMEOUT timeout_us, const struct transport_conn_param *param)
{
	(void)address;
	(void)qual;
	(void)timeout_us;
	(void)param;
	if (mock_result("connect"))
		return mock.error;
	mock.ep = ep;
	return 0;
}

static int mock_accept(void *request, struct core_ep *ep, const struct transport_conn_param *param)
{
	(void)request;
	(void)param;
	if (mock_result("accept"))
		return mock.error;
	mock.ep = ep;
	return 0;
}

static void mock_reject(void *request, enum transport_reject why, const void *private_data,
			uint32_t size)
{
	(void)private_data;
	(void)size;
	(void)request;
	mock.rejects++;
	mock.why = why;
}

static void mock_disconnect(struct core_ep *ep, bool is_graceful)
{
	if (!is_graceful)
		core_ep_ended(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void mock_post_request(struct core_ep *ep, struct core_req *req)
{
	(void)ep;
	mock.posts++;
	mock.req = req;
}

#define TRANSPORT_FAST_FLAGS                                                                       \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |                       \
	 DAT_COMPLETION_BARRIER_FENCE_FLAG)

static bool is_same_segment(const DAT_LMR_TRIPLET *a, const DAT_LMR_TRIPLET *b)
{
	return a->lmr_context == b->lmr_context && a->virtual_address == b->virtual_address &&
	       a->segment_length == b->segment_length;
}

static inline bool transport_post_fast(struct core_handle *cell, struct core_ep *ep,
				       const struct core_fast_post *post)
{
	assert(cell == ep->cell && post->number == ep->req.tail - 1);
	mock.fast_posts++;
	if (!mock.takes_fast)
		return false;
	mock.req = post->req;
	assert(mock.req->sequence == post->number);
	assert(is_same_segment(mock.req->iov, &post->segment));
	assert(post->op == CORE_OP_SEND ||
	       (mock.req->remote.target_address == post->remote.target_address &&
		mock.req->remote.rmr_context == post->remote.rmr_context));
	return true;
}

static void mock_post_recv(struct core_ep *ep)
{
	mock.recvs++;
	if (mock.on_post_recv)
		mock.on_post_recv(ep);
}

static void mock_progress_ep(struct core_ep *ep)
{
	if (mock.on_progress_ep)
		mock.on_progress_ep(ep);
}

static inline bool transport_recv_fast(struct core_handle *cell, struct core_ep *ep,
				       const struct core_fast_post *post)
{
	const struct core_wqe *wqe = &ep->recv.slots[post->number & ep->recv.mask];

	assert(cell == ep->cell && post->number == ep->recv.tail - 1);
	assert(is_same_segment(wqe->iov, &post->segment));
	mock.fast_recvs++;
	return mock.takes_fast;
}

static void mock_abort(struct core_ep *ep)
{
	(void)ep;
	mock.aborts++;
}

static void mock_kick(struct core_ia *ia)
{
	(void)ia;
	mock.kicks++;
}

#include "core/ep/data_path.h"

static const struct transport_ops mock_ops = {
	.name = "mock",
	.ia_open = mock_ia_open,
	.ia_close = mock_ia_close,
	.progress = mock_progress,
	.arm = mock_arm,
	.sleep_begin = transport_no_sleep_begin,
	.sleep_end = transport_no_sleep_end,
	.pz_create = mock_pz_create,
	.pz_destroy = mock_pz_destroy,
	.lmr_create = mock_lmr_create,
	.lmr_destroy = mock_lmr_destroy,
	.ep_create = mock_ep_create,
	.ep_detach = mock_ep_nothing,
	.ep_destroy = mock_ep_destroy,
	.listen = mock_listen,
	.unlisten = mock_unlisten,
	.connect = mock_connect,
	.accept = mock_accept,
	.reject = mock_reject,
	.disconnect = mock_disconnect,
	.peer = transport_no_peer,
	.post_request = mock_post_request,
	.post_recv = mock_post_recv,
	.progress_ep = mock_progress_ep,
	.abort = mock_abort,
	.kick = mock_kick,
	.srq_create = transport_no_srq_create,
	.srq_destroy = transport_no_srq_destroy,
	.srq_post = transport_no_srq_post,
	.rmr_key_create = transport_no_rmr_key_create,
	.rmr_key_retire = transport_no_rmr_key_retire,
	.rmr_key_activate = transport_no_rmr_key,
	.rmr_key_revoke = transport_no_rmr_key_revoke,
	.rmr_key_destroy = transport_no_rmr_key,
};

const struct transport_ops *const transport_this = &mock_ops;

/* --- called by libdat when it loads the provider --- */

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

/* --- for the tests --- */

void mock_open(struct mock_ia *ia)
{
	DAT_PROVIDER_INFO info = {.ia_name = "mock",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};

	memset(&mock, 0, sizeof(mock));
	dat_provider_init(&info, "lo");
	ia->async = DAT_HANDLE_NULL;
	assert_int_equal(core_ia_open_safe((DAT_NAME_PTR) "mock", 8, &ia->async, &ia->ia),
			 DAT_SUCCESS);
	assert_int_equal(core_pz_create(ia->ia, &ia->pz), DAT_SUCCESS);
	assert_int_equal(core_evd_create(ia->ia, 64, DAT_HANDLE_NULL,
					 DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG, &ia->evd),
			 DAT_SUCCESS);
}

void mock_close(struct mock_ia *ia)
{
	assert_int_equal(core_ia_close(ia->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(mock.adapters, 0);
	assert_int_equal(mock.endpoints, 0);
	assert_int_equal(mock.zones, 0);
	assert_int_equal(mock.registered, 0);
	assert_int_equal(mock.listeners, 0);
}

DAT_EP_HANDLE mock_ep_with(struct mock_ia *ia, const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep;

	assert_int_equal(core_ep_create(ia->ia, ia->pz, ia->evd, ia->evd, ia->evd, attr, &ep),
			 DAT_SUCCESS);
	return ep;
}

DAT_EP_HANDLE mock_ep(struct mock_ia *ia)
{
	return mock_ep_with(ia, NULL);
}

void mock_link(struct mock_ia *ia, DAT_EP_HANDLE ep)
{
	const struct transport_conn_param peer = {.read_in = 8, .read_out = 8};
	struct sockaddr_in address = {.sin_family = AF_INET};

	assert_int_equal(core_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&address, 7, DAT_TIMEOUT_INFINITE,
					 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
			 DAT_SUCCESS);
	core_lock_acquire(&mock.ep->cell->lock);
	core_ep_established(mock.ep, &peer);
	core_handle_clear_slow(mock.ep->cell, CORE_EP_SLOW_TRANSPORT);
	core_ep_leave(mock.ep);
	assert_int_equal(mock_event(ia->evd).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
}

DAT_EP_HANDLE mock_connected(struct mock_ia *ia)
{
	DAT_EP_HANDLE ep = mock_ep(ia);

	mock_link(ia, ep);
	return ep;
}

DAT_EVENT mock_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_int_equal(core_evd_dequeue(evd, &event), DAT_SUCCESS);
	return event;
}

void mock_no_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_int_equal(core_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

bool mock_own(DAT_HANDLE handle)
{
	struct core_lock *lock = &((struct core_handle *)handle)->lock;

	/* a lock that several threads have used takes longer to become biased */
	for (int i = 0; i < 1000000; i++) {
		if (core_lock_try(lock)) {
			core_lock_leave(lock);
			return true;
		}
		core_lock_acquire(lock);
		core_lock_release(lock);
	}
	return false;
}
