// SPDX-License-Identifier: BSD-2-Clause
/*
 * Posts of one segment in the region of the post before, which take the fast path: they are refused
 * exactly when the general path refuses them, with the same code, and leave the same behind. Each
 * case is posted on either path, the general one for every reason there is.
 */
#include "core/mem/mem.h"
#include "core/mem/pz.h"
#include "mock.h"

#define LENGTH 8192u

static struct mock_ia ia;
static DAT_EP_HANDLE handle;
static struct core_ep *ep;
static unsigned char memory[LENGTH];
static DAT_LMR_HANDLE lmr; /* of all of it */
static DAT_LMR_CONTEXT key;

static DAT_LMR_HANDLE new_lmr(DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *key_out)
{
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_LMR_HANDLE made;

	assert_int_equal(core_lmr_create(ia.ia, DAT_MEM_TYPE_VIRTUAL, region, LENGTH, ia.pz,
					 privileges, &made, key_out, NULL, NULL, NULL),
			 DAT_SUCCESS);
	return made;
}

static DAT_LMR_TRIPLET segment(DAT_LMR_CONTEXT context, int64_t offset, DAT_VLEN length)
{
	return (DAT_LMR_TRIPLET){.lmr_context = context,
				 .virtual_address = (uintptr_t)memory + (uint64_t)offset,
				 .segment_length = length};
}

enum way {
	SEND,
	WRITE,
	RECEIVE,
	WAYS,
};

static struct core_known *known(enum way way)
{
	return way == RECEIVE ? &ep->known_target : &ep->known_source;
}

static DAT_RETURN post_flags(enum way way, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = 5,
				  .target_address = 77,
				  .segment_length = iov ? iov->segment_length : 0};
	DAT_DTO_COOKIE cookie = {.as_64 = 99};

	if (way == SEND)
		return core_ep_post_send(handle, 1, iov, cookie, flags);
	if (way == WRITE)
		return core_ep_post_rdma_write(handle, 1, iov, cookie, &remote, flags);
	return core_ep_post_recv(handle, 1, iov, cookie, flags);
}

static DAT_RETURN post(enum way way, DAT_LMR_TRIPLET iov)
{
	return post_flags(way, &iov, DAT_COMPLETION_DEFAULT_FLAG);
}

/* From now on the region is that of the last post. */
static void know(enum way way)
{
	assert_int_equal(post(way, segment(key, 0, 8)), DAT_SUCCESS);
	assert_ptr_equal(known(way)->lmr, core_mem_slot(ep->ia->mem, key));
}

/* The Receive behind so many others; NULL: there are not so many. */
static const struct core_wqe *recv_at(uint64_t count)
{
	uint64_t place = ep->recv.head + count;

	return place < ep->recv.tail ? &ep->recv.slots[place & ep->recv.mask] : NULL;
}

static uint64_t posted(enum way way)
{
	return way == RECEIVE ? ep->recv.tail : ep->req.tail;
}

/* All that is posted is done, and its events are taken. */
static void settle(void)
{
	DAT_EVENT event;

	core_lock_acquire(&ep->cell->lock);
	while (ep->req.head != ep->req.tail)
		core_req_done(ep, core_req_at(&ep->req, ep->req.head), DAT_DTO_SUCCESS, 0);
	while (ep->recv.head != ep->recv.tail)
		core_recv_done(ep, DAT_DTO_SUCCESS, 0, false);
	core_ep_leave(ep);
	while (core_evd_dequeue(ia.evd, &event) == DAT_SUCCESS)
		;
}

static unsigned int fast_calls(void)
{
	return mock.fast_posts + mock.fast_recvs;
}

static void set_slow(uint16_t reasons)
{
	core_lock_acquire(&ep->cell->lock);
	core_handle_clear_slow(ep->cell, UINT16_MAX);
	core_handle_set_slow(ep->cell, reasons);
	core_ep_leave(ep);
}

static void expect_once(enum way way, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags,
			DAT_RETURN ret)
{
	uint64_t before = posted(way);

	assert_int_equal(post_flags(way, iov, flags), ret);
	/* not seen otherwise: a thread enters a lock of its own again */
	assert_int_equal(atomic_load(&ep->cell->lock.inside), 0);
	assert_int_equal(posted(way), before + (ret == DAT_SUCCESS));
	if (ret == DAT_SUCCESS)
		settle();
}

/*
 * All paths come to that, and a refused post leaves no trace: the fast path that the transport
 * declines or takes, the general path as no region is known, and as there is one reason against the
 * fast path.
 */
static void expect(enum way way, DAT_LMR_TRIPLET *iov, DAT_COMPLETION_FLAGS flags, DAT_RETURN ret)
{
	struct core_known region = *known(way);
	uint16_t reasons = ep->cell->slow_reasons;
	unsigned int before;

	for (unsigned takes = 0; takes < 2; takes++) {
		mock.takes_fast = takes;
		expect_once(way, iov, flags, ret);
		*known(way) = region;
	}
	before = fast_calls();
	*known(way) = CORE_KNOWN_NONE;
	expect_once(way, iov, flags, ret);
	*known(way) = region;
	for (unsigned int reason = CORE_EP_SLOW_STATE; reason <= CORE_EP_SLOW_PEER; reason *= 2) {
		set_slow((uint16_t)reason);
		expect_once(way, iov, flags, ret);
	}
	set_slow(reasons);
	*known(way) = region;
	assert_int_equal(fast_calls(), before);
	mock.takes_fast = false;
}

static DAT_RETURN error(DAT_RETURN type, DAT_RETURN subtype)
{
	return DAT_CLASS_ERROR | type | subtype;
}

static DAT_RETURN privileges_error(enum way way)
{
	return error(DAT_PRIVILEGES_VIOLATION,
		     way == RECEIVE ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
}

static int setup(void **state)
{
	(void)state;
	mock_open(&ia);
	handle = mock_connected(&ia);
	ep = mock.ep;
	lmr = new_lmr(DAT_MEM_PRIV_ALL_FLAG, &key);
	(void)mock_own(handle);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mock_close(&ia);
	return 0;
}

/* --- what is posted --- */

static void post__known_region__request_as_asked_for(void **state)
{
	const DAT_COMPLETION_FLAGS flags =
		DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

	(void)state;
	for (enum way way = SEND; way <= WRITE; way++) {
		DAT_LMR_TRIPLET iov = segment(key, 100, 50);

		know(way);
		mock.req = NULL;
		assert_int_equal(post_flags(way, &iov, flags), DAT_SUCCESS);
		assert_non_null(mock.req);
		assert_int_equal(mock.req->op, way == SEND ? CORE_OP_SEND : CORE_OP_RDMA_WRITE);
		assert_int_equal(mock.req->flags, flags);
		assert_int_equal(mock.req->segments, 1);
		assert_int_equal(mock.req->len, 50);
		assert_memory_equal(mock.req->iov, &iov, sizeof(iov));
		assert_int_equal(mock.req->cookie.as_64, 99);
		assert_int_equal(mock.req->sequence, ep->req.tail - 1);
		if (way == WRITE) {
			assert_int_equal(mock.req->remote.rmr_context, 5);
			assert_int_equal(mock.req->remote.target_address, 77);
		}
	}
}

static void post_recv__known_region__receive_as_asked_for(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 100, 50);
	const struct core_wqe *wqe;

	(void)state;
	know(RECEIVE);
	assert_int_equal(post_flags(RECEIVE, &iov, DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
	wqe = recv_at(1);
	assert_int_equal(wqe->segments, 1);
	assert_int_equal(wqe->len, 50);
	assert_int_equal(wqe->cookie.as_64, 99);
	assert_int_equal(wqe->flags, 0);
	assert_memory_equal(wqe->iov, &iov, sizeof(iov));
	assert_null(recv_at(2));
}

/* Whatever came before. */
static void post__one_segment_then_several_then_none__each_as_it_is(void **state)
{
	static const DAT_COUNT counts[] = {1, 3, 1, 0, 1, 2};
	DAT_LMR_TRIPLET iov[3] = {segment(key, 0, 8), segment(key, 100, 9), segment(key, 200, 10)};
	static const DAT_VLEN lengths[] = {0, 8, 17, 27};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		const struct core_wqe *wqe;

		assert_int_equal(core_ep_post_send(handle, counts[i], iov, cookie, 0), DAT_SUCCESS);
		assert_int_equal(mock.req->segments, counts[i]);
		assert_int_equal(mock.req->len, lengths[counts[i]]);
		assert_int_equal(core_ep_post_recv(handle, counts[i], iov, cookie, 0), DAT_SUCCESS);
		wqe = recv_at(i);
		assert_int_equal(wqe->segments, counts[i]);
		assert_int_equal(wqe->len, lengths[counts[i]]);
		for (DAT_COUNT k = 0; k < counts[i]; k++) {
			assert_memory_equal(&mock.req->iov[k], &iov[k], sizeof(iov[k]));
			assert_memory_equal(&wqe->iov[k], &iov[k], sizeof(iov[k]));
		}
	}
}

/* --- which posts take the fast path --- */

static void expect_path(enum way way, DAT_COUNT segments, DAT_LMR_TRIPLET iov,
			DAT_COMPLETION_FLAGS flags, bool is_fast)
{
	DAT_LMR_TRIPLET list[2] = {iov, iov};
	DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = 2 * iov.segment_length};
	/* of 64 bits: EP-SEND-10 EP-RECV-08 EP-RDMAW-12 */
	DAT_DTO_COOKIE cookie = {.as_64 = 0xfedcba9876543210u};
	unsigned int fast = fast_calls(), general = mock.posts + mock.recvs;
	DAT_RETURN ret;

	mock.takes_fast = true;
	mock.req = NULL;
	if (way == SEND)
		ret = core_ep_post_send(handle, segments, list, cookie, flags);
	else if (way == WRITE)
		ret = core_ep_post_rdma_write(handle, segments, list, cookie, &remote, flags);
	else
		ret = core_ep_post_recv(handle, segments, list, cookie, flags);
	assert_int_equal(fast_calls(), fast + is_fast);
	assert_int_equal(mock.posts + mock.recvs, general + (ret == DAT_SUCCESS && !is_fast));
	if (is_fast)
		assert_int_equal(ret, DAT_SUCCESS);
	if (ret == DAT_SUCCESS)
		assert_true((way == RECEIVE ? recv_at(posted(way) - 1 - ep->recv.head)->cookie.as_64
					    : mock.req->cookie.as_64) == cookie.as_64);
	if (ret == DAT_SUCCESS)
		settle();
	mock.takes_fast = false;
}

static void post__each_parameter__fast_only_if_all_are_plain(void **state)
{
	const DAT_COMPLETION_FLAGS suppress = DAT_COMPLETION_SUPPRESS_FLAG;
	const DAT_COMPLETION_FLAGS solicited = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	const DAT_COMPLETION_FLAGS fence = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	const DAT_COMPLETION_FLAGS unsignalled = DAT_COMPLETION_UNSIGNALLED_FLAG;

	(void)state;
	if (!mock_own(handle))
		skip();
	for (enum way way = 0; way < WAYS; way++) {
		bool is_request = way != RECEIVE;
		DAT_LMR_TRIPLET good = segment(key, 0, 8);

		know(way);
		settle();
		expect_path(way, 1, good, 0, true);
		expect_path(way, 1, good, suppress, is_request);
		expect_path(way, 1, good, solicited, is_request);
		expect_path(way, 1, good, fence, is_request);
		expect_path(way, 1, good, suppress | solicited | fence, is_request);
		expect_path(way, 1, good, unsignalled, false);
		expect_path(way, 1, good, 0x20, false);
		expect_path(way, 1, segment(key, LENGTH - 1, 1), 0, true);
		expect_path(way, 1, segment(key, 0, LENGTH), 0, true);
		expect_path(way, 1, segment(key, 0, LENGTH + 1), 0, false);
		expect_path(way, 1, segment(key, 0, 0), 0, false);
		expect_path(way, 1, segment(key + 1, 0, 8), 0, false);
		expect_path(way, 2, good, 0, false);
		expect_path(way, 0, good, 0, false);
		expect_path(way, -1, good, 0, false);
		know(way); /* an empty one is not what is known next */
		settle();
		expect_path(way, 1, good, 0, true);
	}
}

static void post__longer_than_allowed__not_on_the_fast_path(void **state)
{
	(void)state;
	if (!mock_own(handle))
		skip();
	ep->attr.max_message_size = 16;
	ep->attr.max_rdma_size = 12;
	ep->ia->attr.max_rdma_size = 24;
	know(SEND);
	know(RECEIVE);
	settle();
	expect_path(SEND, 1, segment(key, 0, 16), 0, true);
	expect_path(SEND, 1, segment(key, 0, 17), 0, false);
	/* the smaller of the two limits ends the fast path of both */
	expect_path(WRITE, 1, segment(key, 0, 16), 0, true);
	expect_path(WRITE, 1, segment(key, 0, 17), 0, false);
	expect_path(WRITE, 1, segment(key, 0, 24), 0, false);
	expect_path(WRITE, 1, segment(key, 0, 25), 0, false);
	expect_path(RECEIVE, 1, segment(key, 0, 25), 0, true);
}

/* DTO-111 */
static void post__queue_full__not_on_the_fast_path(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	if (!mock_own(handle))
		skip();
	mock.takes_fast = true;
	for (enum way way = SEND; way <= RECEIVE; way += RECEIVE - SEND) {
		uint32_t capacity = way == RECEIVE ? ep->recv.capacity : ep->req.capacity;
		unsigned int before;

		know(way);
		before = fast_calls();
		for (uint32_t i = 1; i < capacity; i++)
			assert_int_equal(post(way, iov), DAT_SUCCESS);
		assert_int_equal(fast_calls(), before + capacity - 1);
		assert_int_equal(mock_code(post(way, iov)), DAT_INSUFFICIENT_RESOURCES);
		assert_int_equal(fast_calls(), before + capacity - 1);
	}
}

/* DTO-95 DTO-85: freed between posts, or of another zone. */
static void post__region_gone_or_of_another_zone__not_on_the_fast_path(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	unsigned int before;
	DAT_PZ_HANDLE zone;

	(void)state;
	if (!mock_own(handle))
		skip();
	for (enum way way = 0; way < WAYS; way++)
		know(way);
	assert_int_equal(core_pz_create(ia.ia, &zone), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(core_ep_reset(handle), DAT_SUCCESS);
	assert_int_equal(
		core_ep_modify(handle, DAT_EP_FIELD_PZ_HANDLE, &(DAT_EP_PARAM){.pz_handle = zone}),
		DAT_SUCCESS);
	ep->state = DAT_EP_STATE_CONNECTED;
	core_ep_review_slow(ep);
	assert_int_equal(ep->cell->slow_reasons, 0);
	before = fast_calls();
	for (enum way way = 0; way < WAYS; way++)
		assert_int_equal(mock_code(post(way, iov)), DAT_PROTECTION_VIOLATION);
	ep->pz = ((struct core_handle *)ia.pz)->object;
	for (enum way way = 0; way < WAYS; way++)
		know(way);
	assert_int_equal(fast_calls(), before + 1); /* a Send has made it known for the Write */
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (enum way way = 0; way < WAYS; way++)
		assert_int_equal(post(way, iov), privileges_error(way));
	assert_int_equal(fast_calls(), before + 1);
	ep->pz = ((struct core_handle *)zone)->object;
}

/* What is declined goes to post_request and post_recv, once each. */
static void post__transport_declines__general_slot_follows(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	if (!mock_own(handle))
		skip();
	for (enum way way = 0; way < WAYS; way++) {
		unsigned int fast, general;

		know(way);
		fast = fast_calls();
		general = mock.posts + mock.recvs;
		assert_int_equal(post(way, iov), DAT_SUCCESS);
		assert_int_equal(fast_calls(), fast + 1);
		assert_int_equal(mock.posts + mock.recvs, general + 1);
		mock.takes_fast = true;
		assert_int_equal(post(way, iov), DAT_SUCCESS);
		assert_int_equal(fast_calls(), fast + 2);
		assert_int_equal(mock.posts + mock.recvs, general + 1);
		mock.takes_fast = false;
	}
}

/* --- memory --- */

/* DTO-84 LMR-USE-01: to the very end, and not one byte further. */
static void post__on_the_edges_of_the_region__only_inside(void **state)
{
	static const struct {
		int64_t offset;
		DAT_VLEN length;
		bool is_good;
	} cases[] = {
		{0, LENGTH, true},
		{LENGTH - 1, 1, true},
		{LENGTH - 8, 8, true},
		{LENGTH - 8, 9, false},
		{LENGTH, 1, false},
		{0, LENGTH + 1, false},
		{1, LENGTH, false},
		{-1, 1, false},
		{-1, 2, false},
		{0, UINT64_MAX, false},
		{1, UINT64_MAX, false},
		{LENGTH - 1, UINT64_MAX, false},
		{-8, (DAT_VLEN)-8, false},
		{INT64_MIN, 8, false},
		/* of no bytes: always good */
		{0, 0, true},
		{LENGTH, 0, true},
		{-1, 0, true},
	};

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		know(way);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			DAT_LMR_TRIPLET iov = segment(key, cases[i].offset, cases[i].length);

			expect(way, &iov, 0,
			       cases[i].is_good ? DAT_SUCCESS
						: error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
		}
	}
}

/* Of no bytes: no segment, whatever it names, and the next one does not look there. */
static void post__no_bytes_of_nothing__no_segment(void **state)
{
	DAT_LMR_TRIPLET good = segment(key, 0, 8);

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		know(way);
		for (unsigned is_own = 0; is_own < 2; is_own++) {
			settle();
			assert_int_equal(post(way, segment(is_own ? key : CORE_MEM_MAX - 1, 0, 0)),
					 DAT_SUCCESS);
			if (way == RECEIVE)
				assert_int_equal(core_recv_next(ep)->segments, 0);
			else
				assert_int_equal(mock.req->segments, 0);
			assert_int_equal(post(way, good), DAT_SUCCESS);
		}
	}
}

/* LMR-USE-04 LMR-USE-05 */
static void post__another_context__privileges_violation(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		DAT_LMR_TRIPLET none = segment(0, 0, 8), other = segment(key + 1, 0, 8);

		know(way);
		expect(way, &none, 0, privileges_error(way));
		expect(way, &other, 0, privileges_error(way));
	}
}

/* DTO-95 */
static void post__region_freed__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8), none = segment(0, 0, 8);

	(void)state;
	for (enum way way = 0; way < WAYS; way++)
		know(way);
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (enum way way = 0; way < WAYS; way++) {
		expect(way, &iov, 0, privileges_error(way));
		/* the slot has key 0 by now, which is nobody's */
		expect(way, &none, 0, privileges_error(way));
	}
}

/* Makes regions until one lies where the first one lay. */
static DAT_LMR_CONTEXT take_its_slot(DAT_MEM_PRIV_FLAGS privileges)
{
	const struct core_lmr *slot = core_mem_slot(ep->ia->mem, key);
	DAT_LMR_CONTEXT next;

	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	while (lmr = new_lmr(privileges, &next), core_mem_slot(ep->ia->mem, next) != slot)
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	return next;
}

static void post__slot_used_again__old_key_refused_and_new_one_good(void **state)
{
	DAT_LMR_TRIPLET old = segment(key, 0, 8), new;

	(void)state;
	for (enum way way = 0; way < WAYS; way++)
		know(way);
	new = segment(take_its_slot(DAT_MEM_PRIV_ALL_FLAG), 0, 8);
	assert_int_not_equal(new.lmr_context, old.lmr_context);
	for (enum way way = 0; way < WAYS; way++) {
		expect(way, &old, 0, privileges_error(way));
		expect(way, &new, 0, DAT_SUCCESS);
	}
}

/* DTO-86 DTO-87; to write includes to read (LMR-CREATE-39). */
static void post__slot_used_again_with_other_privileges__these_count(void **state)
{
	DAT_LMR_TRIPLET iov;

	(void)state;
	for (enum way way = 0; way < WAYS; way++)
		know(way);
	iov = segment(take_its_slot(DAT_MEM_PRIV_LOCAL_READ_FLAG), 0, 8);
	expect(SEND, &iov, 0, DAT_SUCCESS);
	expect(WRITE, &iov, 0, DAT_SUCCESS);
	expect(RECEIVE, &iov, 0, privileges_error(RECEIVE));
	key = iov.lmr_context;
	iov = segment(take_its_slot(DAT_MEM_PRIV_LOCAL_WRITE_FLAG), 0, 8);
	expect(SEND, &iov, 0, DAT_SUCCESS);
	expect(RECEIVE, &iov, 0, DAT_SUCCESS);
	key = iov.lmr_context;
	iov = segment(take_its_slot(DAT_MEM_PRIV_REMOTE_READ_FLAG), 0, 8);
	expect(SEND, &iov, 0, privileges_error(SEND));
	expect(RECEIVE, &iov, 0, privileges_error(RECEIVE));
}

/* A slot has so many keys; then the first one names another region. */
static void post__key_issued_again__other_region_counts(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	for (enum way way = 0; way < WAYS; way++)
		know(way);
	core_mem_slot(ep->ia->mem, key)->generation--;
	assert_int_equal(take_its_slot(DAT_MEM_PRIV_REMOTE_READ_FLAG), key);
	for (enum way way = 0; way < WAYS; way++)
		expect(way, &iov, 0, privileges_error(way));
}

/* Of a region that is too large, what lies around the place is known; of others all. */
static void core_mem_know_around__each_place__that_much_of_the_region(void **state)
{
	static const struct {
		DAT_VADDR at, from;
		DAT_VLEN most, length;
	} cases[] = {
		{1050, 1000, UINT64_MAX, 100}, {1050, 1000, 100, 100}, {1099, 1000, 101, 100},
		{1000, 1000, 10, 10},	       {1005, 1000, 10, 10},   {1006, 1001, 10, 10},
		{1050, 1045, 10, 10},	       {1094, 1089, 10, 10},   {1095, 1090, 10, 10},
		{1099, 1090, 10, 10},	       {1099, 1001, 99, 99},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_known region = {.address = 1000, .length = 100};

		core_mem_know_around(&region, cases[i].at, cases[i].most);
		assert_int_equal(region.address, cases[i].from);
		assert_int_equal(region.length, cases[i].length);
	}
}

/* The name of a slot: odd uses have a key, and none comes back while they are counted. */
static void core_mem_publish__each_use__another_name(void **state)
{
	struct core_lmr *slot = core_mem_slot(ep->ia->mem, key);
	uint64_t name = atomic_load(&slot->name), next;

	(void)state;
	assert_int_equal((uint32_t)name, key);
	assert_int_equal(name >> 32 & 1, 1);
	for (int i = 0; i < 3; i++) {
		slot->generation--; /* for the same key again */
		core_mem_revoke(ep->ia->mem, slot);
		next = atomic_load(&slot->name);
		assert_int_equal(next, ((name >> 32) + 1) << 32);
		assert_int_equal(core_mem_publish(ep->ia->mem, slot), key);
		next = atomic_load(&slot->name);
		assert_int_equal(next, name + (UINT64_C(2) << 32));
		name = next;
	}
}

static void move_to_zone(DAT_EP_HANDLE endpoint, DAT_PZ_HANDLE zone)
{
	DAT_EP_PARAM param = {.pz_handle = zone};

	assert_int_equal(core_ep_modify(endpoint, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
}

/* DTO-85 LMR-USE-02: what was good for the zone before is asked for again. */
static void post_recv__zone_of_the_endpoint_changed__protection_violation(void **state)
{
	DAT_EP_HANDLE endpoint = mock_ep(&ia);
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 99};
	DAT_PZ_HANDLE other;

	(void)state;
	assert_int_equal(core_pz_create(ia.ia, &other), DAT_SUCCESS);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0), DAT_SUCCESS);
	move_to_zone(endpoint, other);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0),
			 error(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE));
	move_to_zone(endpoint, ia.pz);
	assert_int_equal(core_ep_post_recv(endpoint, 1, &iov, cookie, 0), DAT_SUCCESS);
	assert_int_equal(core_ep_free(endpoint), DAT_SUCCESS);
	assert_int_equal(core_pz_free(other), DAT_SUCCESS);
}

/* --- all the rest --- */

/* EP-SEND-09 EP-RDMAW-11 */
static void post__longer_than_allowed__refused(void **state)
{
	DAT_LMR_TRIPLET longest = segment(key, 0, 16), longer = segment(key, 0, 17);

	(void)state;
	ep->attr.max_message_size = 16;
	ep->ia->attr.max_rdma_size = 16;
	for (enum way way = SEND; way <= WRITE; way++) {
		know(way);
		expect(way, &longest, 0, DAT_SUCCESS);
		expect(way, &longer, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	}
}

/* EP-RDMAW-11 EP-RDMAR-10: the adapter's max_rdma_size counts, not the endpoint's */
static void rdma__above_the_endpoints_size__up_to_the_adapters(void **state)
{
	DAT_LMR_TRIPLET above = segment(key, 0, 64), beyond = segment(key, 0, 65);
	DAT_RMR_TRIPLET remote = {.rmr_context = 5};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	ep->attr.max_rdma_size = 16;
	ep->ia->attr.max_rdma_size = 64;
	ep->attr.max_rdma_read_out = 1;
	ep->peer_read_in = 1;
	know(WRITE);
	expect(WRITE, &above, 0, DAT_SUCCESS);
	expect(WRITE, &beyond, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	remote.segment_length = 65;
	assert_int_equal(core_ep_post_rdma_read(handle, 1, &beyond, cookie, &remote, 0),
			 error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	remote.segment_length = 64; /* a local buffer may be longer than that */
	assert_int_equal(core_ep_post_rdma_read(handle, 1, &beyond, cookie, &remote, 0),
			 DAT_SUCCESS);
	settle();
}

/* EP-RDMAW-11: the IA's limit counts, on either path. */
static void rdma_write__longer_than_the_endpoints_own_limit__done(void **state)
{
	DAT_LMR_TRIPLET longer = segment(key, 0, 17);
	unsigned int before;

	(void)state;
	ep->attr.max_rdma_size = 16;
	ep->attr.max_message_size = 17;
	know(WRITE);
	expect(WRITE, &longer, 0, DAT_SUCCESS);
	before = mock.fast_posts;
	assert_int_equal(post(WRITE, longer), DAT_SUCCESS);
	assert_int_equal(mock.fast_posts, before + 1);
}

static void rdma_write__target_shorter_or_missing__refused(void **state)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = 5, .segment_length = 7};
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	(void)state;
	know(WRITE);
	assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, &remote, 0),
			 error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE));
	assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, NULL, 0),
			 error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	/* the lock was left */
	remote.segment_length = 8;
	assert_int_equal(core_ep_post_rdma_write(handle, 1, &iov, cookie, &remote, 0), DAT_SUCCESS);
}

static void post__no_segment_list_or_none_allowed__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		know(way);
		expect(way, NULL, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	}
	ep->attr.max_request_iov = 0;
	ep->attr.max_rdma_write_iov = 0;
	ep->attr.max_recv_iov = 0;
	core_ep_review_slow(ep);
	assert_int_equal(ep->cell->slow_reasons, CORE_EP_SLOW_LIMIT);
	for (enum way way = 0; way < WAYS; way++)
		expect(way, &iov, 0, error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
}

static void post__flags_of_others__refused(void **state)
{
	static const DAT_COMPLETION_FLAGS flags[] = {
		DAT_COMPLETION_UNSIGNALLED_FLAG, (DAT_COMPLETION_FLAGS)0x20,
		(DAT_COMPLETION_FLAGS)0x80000000u, (DAT_COMPLETION_FLAGS)0x100};
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	DAT_EP_ATTR attr;

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		DAT_RETURN arg = way == WRITE ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5;

		know(way);
		for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
			expect(way, &iov, flags[i], error(DAT_INVALID_PARAMETER, arg));
	}
	expect(RECEIVE, &iov, DAT_COMPLETION_SUPPRESS_FLAG,
	       error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
	attr = ep->attr;
	ep->attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	ep->attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	for (enum way way = 0; way < WAYS; way++)
		expect(way, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_SUCCESS);
	assert_int_equal(post_flags(RECEIVE, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG), DAT_SUCCESS);
	assert_int_equal(core_recv_next(ep)->flags, DAT_COMPLETION_UNSIGNALLED_FLAG);
	/* what stood in its place before leaves nothing */
	settle();
	for (uint32_t i = 0; i < ep->recv.capacity; i++)
		assert_int_equal(post_flags(RECEIVE, &iov, DAT_COMPLETION_UNSIGNALLED_FLAG),
				 DAT_SUCCESS);
	settle();
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(core_recv_next(ep)->flags, 0);
	ep->attr = attr; /* as its dispatchers know them */
}

/* DTO-111 EP-SEND-32 */
static void post__queue_full__refused(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);
	enum way way;

	(void)state;
	for (way = SEND; way <= RECEIVE; way += RECEIVE - SEND) {
		uint32_t capacity = way == RECEIVE ? ep->recv.capacity : ep->req.capacity;

		know(way);
		for (uint32_t i = 1; i < capacity; i++)
			assert_int_equal(post(way, iov), DAT_SUCCESS);
		expect(way, &iov, 0, error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP));
	}
	expect(WRITE, &iov, 0, error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP));
}

/* In the disconnected state an accepted post is flushed at once. */
static void post__disconnected__flushed(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	know(SEND);
	know(RECEIVE);
	assert_int_equal(core_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	for (int i = 0; i < 3; i++)
		(void)mock_event(ia.evd);
	mock_no_event(ia.evd);
	for (enum way way = 0; way < WAYS; way++) {
		DAT_EVENT event;

		mock.req = NULL;
		assert_int_equal(post(way, iov), DAT_SUCCESS);
		assert_null(mock.req);
		event = mock_event(ia.evd);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_FLUSHED);
	}
}

static void post__unconnected__requests_refused_and_receives_taken(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	know(SEND);
	ep->state = DAT_EP_STATE_UNCONNECTED;
	core_ep_review_slow(ep);
	assert_int_equal(mock_code(post(SEND, iov)), DAT_INVALID_STATE);
	assert_int_equal(mock_code(post(WRITE, iov)), DAT_INVALID_STATE);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	ep->state = DAT_EP_STATE_CONNECTED;
}

/* EP-WMARK-02 EP-WMARK-03 EP-WMARK-04 */
static void post_recv__soft_watermark_passed__event(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	know(RECEIVE);
	assert_int_equal(core_ep_set_watermark(handle, 2, DAT_WATERMARK_INFINITE), DAT_SUCCESS);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	mock_no_event(ia.async);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(mock_event(ia.async).event_data.asynch_error_event_data.reason,
			 DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	mock_no_event(ia.async);
}

/* EP-WMARK-06 */
static void post_recv__hard_watermark_passed__connection_breaks(void **state)
{
	DAT_LMR_TRIPLET iov = segment(key, 0, 8);

	(void)state;
	know(RECEIVE);
	assert_int_equal(core_ep_set_watermark(handle, DAT_WATERMARK_INFINITE, 2), DAT_SUCCESS);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(mock.aborts, 0);
	assert_int_equal(post(RECEIVE, iov), DAT_SUCCESS);
	assert_int_equal(mock.aborts, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(post__known_region__request_as_asked_for),
		T(post_recv__known_region__receive_as_asked_for),
		T(post__one_segment_then_several_then_none__each_as_it_is),
		T(post__each_parameter__fast_only_if_all_are_plain),
		T(post__longer_than_allowed__not_on_the_fast_path),
		T(post__queue_full__not_on_the_fast_path),
		T(post__region_gone_or_of_another_zone__not_on_the_fast_path),
		T(post__transport_declines__general_slot_follows),
		T(post__on_the_edges_of_the_region__only_inside),
		T(post__no_bytes_of_nothing__no_segment),
		T(post__another_context__privileges_violation),
		T(post__region_freed__refused),
		T(post__slot_used_again__old_key_refused_and_new_one_good),
		T(post__slot_used_again_with_other_privileges__these_count),
		T(post__key_issued_again__other_region_counts),
		T(core_mem_know_around__each_place__that_much_of_the_region),
		T(core_mem_publish__each_use__another_name),
		T(post_recv__zone_of_the_endpoint_changed__protection_violation),
		T(post__longer_than_allowed__refused),
		T(rdma__above_the_endpoints_size__up_to_the_adapters),
		T(rdma_write__longer_than_the_endpoints_own_limit__done),
		T(rdma_write__target_shorter_or_missing__refused),
		T(post__no_segment_list_or_none_allowed__refused),
		T(post__flags_of_others__refused),
		T(post__queue_full__refused),
		T(post__disconnected__flushed),
		T(post__unconnected__requests_refused_and_receives_taken),
		T(post_recv__soft_watermark_passed__event),
		T(post_recv__hard_watermark_passed__connection_breaks),
	};

	return cmocka_run_group_tests_name("core post", tests, NULL, NULL);
}
