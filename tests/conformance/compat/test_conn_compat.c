// SPDX-License-Identifier: BSD-2-Clause
/* What existing consumers do with connections (docs/spec/consumers.md), one habit per test. */
#include "conn_remote.h"

/* --- qualifiers and adapters --- */

/* Returns the name of another soft adapter than the one under test, or NULL. */
static const char *other_adapter(DAT_PROVIDER_INFO *infos, DAT_PROVIDER_INFO **pointers,
				 DAT_COUNT most)
{
	DAT_COUNT count = 0;

	for (DAT_COUNT i = 0; i < most; i++)
		pointers[i] = &infos[i];
	dt_ok(dat_registry_list_providers(most, &count, pointers));
	for (DAT_COUNT i = 0; i < count && i < most; i++)
		if (strncmp(infos[i].ia_name, "soft-", 5) == 0 &&
		    strcmp(infos[i].ia_name, dt_adapter()) != 0)
			return infos[i].ia_name;
	return NULL;
}

/* COMPAT-05 */
static void psp_create__same_number_on_two_adapters__both_listen(void **state)
{
	static DAT_PROVIDER_INFO infos[16];
	DAT_PROVIDER_INFO *pointers[16];
	struct conn_fixture *f = *state;
	const char *name = other_adapter(infos, pointers, 16);
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_IA_ATTR attr;
	DAT_PSP_HANDLE psp;
	struct conn_args args = conn_args_of(f);
	DAT_EVENT event;

	if (!name || dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 4, &async, &ia) != DAT_SUCCESS)
		skip();
	dt_ok(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	dt_ok(dat_evd_create(ia, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
	dt_ok(dat_psp_create(ia, f->listener.qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	/* each address leads to its own service point */
	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	dt_ok(dat_cr_reject(dt_request(&f->listener)));
	dt_no_event(evd);
	args.address = attr.ia_address_ptr;
	dt_ok(conn_try(f->b.ep, &args));
	event = conn_request_event(evd);
	assert_ptr_equal(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
	dt_no_event(f->listener.evd);
	dt_ok(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- retry --- */

/* COMPAT-29 EP-CONNECT-44 EP-RESET-12 */
static void ep_connect__listener_starts_late__retry_loop_succeeds(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const DAT_CONN_QUAL qual = dt_unused_qual();

	for (unsigned int i = 0; i < 30; i++) {
		const uint64_t start = dt_now_us();

		if (i == 29) {
			remote_do(&r->peer, REMOTE_LISTEN, qual, 0);
			dt_connect(&f->ia, f->a.ep, qual);
			remote_do(&r->peer, REMOTE_REQUEST, 0, 0);
			remote_do(&r->peer, REMOTE_ACCEPT, 0, 0);
			break;
		}
		dt_connect(&f->ia, f->a.ep, qual);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		assert_true(dt_now_us() - start < DT_WAIT_US / 4); /* notified, not timed out */
		dt_ok(dat_ep_reset(f->a.ep));
	}
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&r->peer, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* --- one IA, one set of EVDs --- */

static void expect_completions(struct dt_ep *a, struct dt_ep *b, unsigned int count)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < count; i++) {
		const DAT_EVENT event = dt_event(a->recv);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(dto->status, DAT_DTO_SUCCESS);
		assert_ptr_equal(dto->ep_handle, dto->user_cookie.as_64 == 1 ? b->ep : a->ep);
		seen |= UINT64_C(1) << dto->user_cookie.as_64;
	}
	assert_true(seen == (UINT64_C(1) << (count + 1)) - 2);
}

/* COMPAT-26 CONN-GEN-05 */
static void self_connect__same_evds__all_operations_complete(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(
		&f->ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG);
	struct dt_ep a = {.recv = evd, .request = evd, .conn = evd}, b = a;
	DAT_LMR_TRIPLET from = dt_seg(&f->buf, CONN_A_SENDS_AT, CONN_BUF_LEN);
	DAT_LMR_TRIPLET into = dt_seg(&f->buf, CONN_A_RECEIVES_AT, CONN_BUF_LEN);
	const DAT_RMR_TRIPLET there = dt_rseg(&f->buf, CONN_B_SENDS_AT, CONN_BUF_LEN);
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, evd, evd, evd, NULL, &a.ep));
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, evd, evd, evd, NULL, &b.ep));
	dt_ok(dat_psp_create_any(f->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_connect(&f->ia, a.ep, qual);
	dt_ok(dat_cr_accept(conn_request(evd), b.ep, 0, NULL));
	for (unsigned int i = 0; i < 2; i++) {
		event = dt_event(evd);
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	dt_fill(f->buf.p + CONN_A_SENDS_AT, CONN_BUF_LEN, 5);
	conn_post_recv(b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	conn_post_send(a.ep, &f->buf, CONN_A_SENDS_AT, 2);
	expect_completions(&a, &b, 2);
	dt_check_pattern(f->buf.p + CONN_B_RECEIVES_AT, CONN_BUF_LEN, 5);
	conn_post_recv(b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	dt_ok(dat_ep_post_rdma_write(a.ep, 1, &from, dt_cookie(2), &there,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_ok(dat_ep_post_rdma_read(a.ep, 1, &into, dt_cookie(3), &there,
				    DAT_COMPLETION_DEFAULT_FLAG));
	conn_post_send(a.ep, &f->buf, CONN_A_SENDS_AT, 4);
	expect_completions(&a, &b, 4);
	dt_check_pattern(f->buf.p + CONN_A_RECEIVES_AT, CONN_BUF_LEN, 5);
	dt_ok(dat_ep_disconnect(b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (unsigned int i = 0; i < 2; i++) {
		event = dt_event(evd);
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	dt_stays_empty(evd);
}

/* --- ends --- */

/* COMPAT-15: counts the events of many connections that end at either side or at both */
static void ep_disconnect__any_way__one_disconnected_per_side(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;

	for (unsigned int i = 0; i < 60; i++) {
		remote_link_passive(r);
		if (i % 3 != 1)
			dt_ok(dat_ep_disconnect(f->b.ep, i & 1 ? DAT_CLOSE_GRACEFUL_FLAG
							       : DAT_CLOSE_ABRUPT_FLAG));
		if (i % 3 != 0)
			remote_do(&r->peer, REMOTE_DISCONNECT,
				  i & 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG, 0);
		conn_expect_failure(&f->b, DAT_CONNECTION_EVENT_DISCONNECTED);
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		remote_do(&r->peer, REMOTE_DISCONNECT, DAT_CLOSE_ABRUPT_FLAG, 0);
		dt_ok(dat_ep_reset(f->b.ep));
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
	}
	conn_stays_quiet(&f->b);
	remote_do(&r->peer, REMOTE_QUIET, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(psp_create__same_number_on_two_adapters__both_listen),
		remote_test(ep_connect__listener_starts_late__retry_loop_succeeds),
		conn_test(self_connect__same_evds__all_operations_complete),
		remote_test(ep_disconnect__any_way__one_disconnected_per_side),
	};

	return cmocka_run_group_tests_name("conn_compat", tests, NULL, NULL);
}
