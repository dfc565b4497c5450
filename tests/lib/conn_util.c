// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the tests of connection set-up; see the header. */
#include "conn_util.h"

/* --- fixture --- */

int conn_setup(void **state)
{
	static struct conn_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	dt_ia_open(&fixture.ia);
	fixture.is_open = true;
	dt_listen(&fixture.ia, &fixture.listener);
	dt_ep_create(&fixture.ia, fixture.ia.pz, NULL, &fixture.a);
	dt_ep_create(&fixture.ia, fixture.ia.pz, NULL, &fixture.b);
	dt_buf_create(&fixture.ia, fixture.ia.pz, &fixture.buf, 4u * CONN_BUF_LEN,
		      DAT_MEM_PRIV_ALL_FLAG);
	*state = &fixture;
	return 0;
}

int conn_teardown(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EVENT event;

	if (!f->is_open)
		return 0;
	if (f->ia.async)
		dt_fails(dat_evd_dequeue(f->ia.async, &event), DAT_QUEUE_EMPTY);
	dt_ia_abort(&f->ia);
	if (f->buf.mapped)
		dt_mem_free(f->buf.p, f->buf.mapped);
	return 0;
}

/* --- attempts --- */

struct conn_args conn_args_of(struct conn_fixture *f)
{
	return (struct conn_args){
		.address = f->ia.attr.ia_address_ptr,
		.qual = f->listener.qual,
		.timeout = DAT_TIMEOUT_INFINITE,
	};
}

DAT_RETURN conn_try(DAT_EP_HANDLE ep, const struct conn_args *args)
{
	return dat_ep_connect(ep, args->address, args->qual, args->timeout, args->size,
			      (DAT_PVOID)(uintptr_t)args->data, args->qos, args->flags);
}

void conn_start_timed(struct conn_fixture *f, DAT_EP_HANDLE ep, DAT_TIMEOUT timeout_us)
{
	struct conn_args args = conn_args_of(f);

	args.timeout = timeout_us;
	dt_ok(conn_try(ep, &args));
}

DAT_EVENT conn_request_event(DAT_EVD_HANDLE evd)
{
	const DAT_EVENT event = dt_event(evd);

	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	assert_non_null(event.event_data.cr_arrival_event_data.cr_handle);
	return event;
}

DAT_CR_HANDLE conn_request(DAT_EVD_HANDLE evd)
{
	return conn_request_event(evd).event_data.cr_arrival_event_data.cr_handle;
}

DAT_CR_PARAM conn_cr_query(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param;
}

DAT_EP_PARAM conn_ep_query(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param;
}

void conn_link(struct conn_fixture *f, struct dt_ep *a, struct dt_ep *b)
{
	dt_connect(&f->ia, a->ep, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), b->ep, 0, NULL));
	dt_expect_conn(a->conn, a->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(b->conn, b->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void conn_expect_failure(struct dt_ep *ep, DAT_EVENT_NUMBER number)
{
	const DAT_EVENT event = dt_expect_conn(ep->conn, ep->ep, number);

	assert_int_equal(dt_ep_state(ep->ep), DAT_EP_STATE_DISCONNECTED);
	assert_int_equal(event.event_data.connect_event_data.private_data_size, 0);
	dt_no_event(ep->conn);
}

/* --- states --- */

struct conn_state_wait {
	DAT_EP_HANDLE ep;
	DAT_EP_STATE state;
};

static bool conn_is_in_state(void *arg)
{
	struct conn_state_wait *wait = arg;

	return dt_ep_state(wait->ep) == wait->state;
}

void conn_await_state(DAT_EP_HANDLE ep, DAT_EP_STATE state)
{
	struct conn_state_wait wait = {.ep = ep, .state = state};

	dt_until(conn_is_in_state, &wait);
}

void conn_no_events(struct dt_ep *ep)
{
	dt_no_event(ep->recv);
	dt_no_event(ep->request);
	dt_no_event(ep->conn);
}

void conn_stays_quiet(struct dt_ep *ep)
{
	const uint64_t end = dt_now_us() + DT_QUIET_US;

	do {
		conn_no_events(ep);
		usleep(500);
	} while (dt_now_us() < end);
}

bool conn_recv_is_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN recv_idle;

	dt_ok(dat_ep_get_status(ep, NULL, &recv_idle, NULL));
	return recv_idle;
}

/* --- data --- */

void conn_post_recv(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t at, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, at, CONN_BUF_LEN);

	dt_ok(dat_ep_post_recv(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

void conn_post_send(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t at, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, at, CONN_BUF_LEN);

	dt_ok(dat_ep_post_send(ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

static void conn_transfer_one_way(struct conn_fixture *f, struct dt_ep *from, struct dt_ep *to,
				  size_t from_at, size_t to_at)
{
	static uint32_t seed;

	seed++;
	dt_fill(f->buf.p + from_at, CONN_BUF_LEN, seed);
	conn_post_recv(to->ep, &f->buf, to_at, seed);
	conn_post_send(from->ep, &f->buf, from_at, seed + 0x1000000u);
	dt_expect_dto(to->recv, to->ep, seed, DAT_DTO_SUCCESS, CONN_BUF_LEN);
	dt_expect_dto(from->request, from->ep, seed + 0x1000000u, DAT_DTO_SUCCESS, DT_ANY_LEN);
	dt_check_pattern(f->buf.p + to_at, CONN_BUF_LEN, seed);
}

void conn_transfer(struct conn_fixture *f, struct dt_ep *a, struct dt_ep *b)
{
	conn_transfer_one_way(f, a, b, CONN_A_SENDS_AT, CONN_B_RECEIVES_AT);
	conn_transfer_one_way(f, b, a, CONN_B_SENDS_AT, CONN_A_RECEIVES_AT);
}

void conn_expect_flushes(struct dt_ep *ep, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		dt_expect_dto(ep->recv, ep->ep, first + i, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
	dt_no_event(ep->recv);
}

/* --- refusals --- */

struct conn_snapshot conn_snapshot(DAT_EP_HANDLE ep)
{
	struct conn_snapshot snapshot;

	memset(&snapshot, 0, sizeof(snapshot));
	dt_ok(dat_ep_get_status(ep, &snapshot.state, &snapshot.recv_idle, &snapshot.request_idle));
	snapshot.param = conn_ep_query(ep);
	return snapshot;
}

void conn_check_unchanged(struct dt_ep *ep, const struct conn_snapshot *before)
{
	const struct conn_snapshot now = conn_snapshot(ep->ep);

	assert_int_equal(now.state, before->state);
	assert_int_equal(now.recv_idle, before->recv_idle);
	assert_int_equal(now.request_idle, before->request_idle);
	assert_ptr_equal(now.param.pz_handle, before->param.pz_handle);
	assert_ptr_equal(now.param.recv_evd_handle, before->param.recv_evd_handle);
	assert_ptr_equal(now.param.request_evd_handle, before->param.request_evd_handle);
	assert_ptr_equal(now.param.connect_evd_handle, before->param.connect_evd_handle);
	conn_no_events(ep);
}

void conn_refuses_handles(DAT_RETURN (*call)(DAT_HANDLE handle, void *arg), void *arg,
			  DAT_HANDLE other_type, DAT_HANDLE freed, DAT_RETURN_SUBTYPE subtype)
{
	const DAT_HANDLE bad[] = {DAT_HANDLE_NULL, DT_NEVER_A_HANDLE, other_type, freed};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		const DAT_RETURN ret = call(bad[i], arg);

		if (ret != DT_ERROR(DAT_INVALID_HANDLE, subtype))
			print_error("bad handle number %zu\n", i);
		dt_fails_with(ret, DAT_INVALID_HANDLE, subtype);
	}
}

DAT_EVD_HANDLE conn_freed_evd(struct dt_ia *ia)
{
	const DAT_EVD_HANDLE evd = dt_evd_create(ia, 4, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG);

	dt_ok(dat_evd_free(evd));
	return evd;
}

DAT_EP_HANDLE conn_freed_ep(struct dt_ia *ia)
{
	struct dt_ep ep;
	DAT_EP_HANDLE handle;

	dt_ep_create(ia, ia->pz, NULL, &ep);
	handle = ep.ep;
	dt_ep_free(&ep);
	return handle;
}

DAT_CR_HANDLE conn_freed_cr(struct conn_fixture *f)
{
	struct dt_ep ep;
	DAT_CR_HANDLE cr;

	dt_ep_create(&f->ia, f->ia.pz, NULL, &ep);
	dt_connect(&f->ia, ep.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	dt_ok(dat_cr_reject(cr));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ep_free(&ep);
	return cr;
}

/* --- lack of resources --- */

struct rlimit conn_descriptors_take(void)
{
	struct rlimit old;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, old.rlim_max}), 0);
	return old;
}

void conn_descriptors_give(const struct rlimit *old)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, old), 0);
}

struct rlimit conn_files_limit(rlim_t bytes)
{
	struct rlimit old;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, old.rlim_max}), 0);
	return old;
}

void conn_files_free(const struct rlimit *old)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, old), 0);
}

/* --- addresses --- */

void conn_check_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(a->sa_family, b->sa_family);
	if (a->sa_family == AF_INET) {
		assert_int_equal(((const struct sockaddr_in *)a)->sin_addr.s_addr,
				 ((const struct sockaddr_in *)b)->sin_addr.s_addr);
		return;
	}
	assert_int_equal(a->sa_family, AF_INET6);
	assert_memory_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
			    &((const struct sockaddr_in6 *)b)->sin6_addr, 16);
}

union conn_address conn_own_address(struct dt_ia *ia)
{
	const struct sockaddr *own = (const struct sockaddr *)ia->attr.ia_address_ptr;
	union conn_address copy;

	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, own, own->sa_family == AF_INET ? sizeof(copy.in) : sizeof(copy.in6));
	return copy;
}

DAT_IA_ADDRESS_PTR conn_dat_address(union conn_address *address)
{
	return (DAT_IA_ADDRESS_PTR)&address->any;
}
