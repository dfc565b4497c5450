// SPDX-License-Identifier: BSD-2-Clause
/* Data transfer with a second process that is stopped, dies, or only polls its memory. */
#include "dto_peer.h"

#include <unistd.h>

static int only_state(void **state)
{
	*state = &rig_of_test;
	return 0;
}

/*
 * A test that fails leaves the adapter open. In the thread sanitizer the peer of a later test, a
 * fork, would die when it creates threads while this process has any (dt_peer_start).
 */
static int close_rest(void **state)
{
	struct rig *rig = *state;

	if (rig->ia.ia)
		dt_ia_abort(&rig->ia);
	return 0;
}

#define peer_test(f) cmocka_unit_test_setup_teardown(f, only_state, close_rest)

/* --- a stopped peer --- */

#define STOPPED_LEN 60000u

/* Posts Receives, is stopped, then takes what arrived. */
static void stopped_child(struct dt_peer *peer, void *arg)
{
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, 4 * STOPPED_LEN);
	dt_fill(far.buf.p + STOPPED_LEN, STOPPED_LEN, 7);
	for (uint64_t i = 0; i < 4; i++)
		post_recv(&far.ep, dt_seg(&far.buf, 2 * STOPPED_LEN, STOPPED_LEN), i);
	dt_peer_sync(peer);
	/* the parent stops this process here */
	dt_peer_sync(peer);
	for (uint64_t i = 0; i < 4; i++)
		expect_received(&far.ep, i, i * 1000);
	far_order(&far);
	dt_check_pattern(far.buf.p, STOPPED_LEN, RIG_SEED);
	dt_peer_sync(peer);
	dt_ia_abort(&far.ia);
}

/*
 * EP-SEND-13 EP-RECV-11 EP-RDMAR-15 EP-RDMAR-17 EP-RDMAW-19: All posts return while the peer is
 * stopped (a post that waited for it would stop the test here), and all complete when it continues.
 */
static void post__peer_stopped__returns(void **state)
{
	struct rig *rig = *state;
	struct far_info info;
	struct dt_peer peer;
	uint64_t start;

	dt_peer_start(&peer, stopped_child, NULL);
	rig_begin(rig);
	info = far_connect(rig, &peer);
	dt_peer_sync(&peer);
	dt_peer_stop(&peer);
	start = dt_now_us();
	for (uint64_t i = 0; i < 4; i++) {
		post_send(&rig->a, dt_seg(&rig->x, 0, i * 1000), i, 0);
		post_write(&rig->a, dt_seg(&rig->x, 0, STOPPED_LEN), far_seg(&info, 0, STOPPED_LEN),
			   10 + i, 0);
		post_recv(&rig->a, dt_seg(&rig->x, 0, 8), i);
	}
	for (uint64_t i = 0; i < 4; i++)
		post_read(&rig->a, dt_seg(&rig->y, 0, STOPPED_LEN),
			  far_seg(&info, STOPPED_LEN, STOPPED_LEN), 20 + i, 0);
	assert_true(dt_now_us() - start < DT_WAIT_US / 2);
	dt_no_event(rig->a.conn);
	assert_int_equal(dt_ep_state(rig->a.ep), DAT_EP_STATE_CONNECTED);
	dt_peer_continue(&peer);
	for (uint64_t i = 0; i < 4; i++) {
		expect_sent(&rig->a, i, i * 1000);
		expect_sent(&rig->a, 10 + i, STOPPED_LEN);
	}
	for (uint64_t i = 0; i < 4; i++)
		expect_sent(&rig->a, 20 + i, STOPPED_LEN);
	dt_check_pattern(rig->y.p, STOPPED_LEN, 7);
	dt_peer_sync(&peer);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	rig_end(rig);
}

/* --- a peer that dies --- */

static void sleeping_child(struct dt_peer *peer, void *arg)
{
	struct far_end far;

	(void)arg;
	far_end_open(peer, &far, 4096);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* DTO-60 DTO-65 DTO-67 CONN-EVT-39 EP-STATE-44 */
static void post_send__peer_killed__transport_error_or_flush(void **state)
{
	struct rig *rig = *state;
	DAT_DTO_COMPLETION_STATUS status;
	struct dt_peer peer;
	DAT_EVENT event;

	dt_peer_start(&peer, sleeping_child, NULL);
	rig_begin(rig);
	far_connect(rig, &peer);
	dt_peer_sync(&peer);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), 9);
	for (uint64_t i = 0; i < 4; i++)
		post_send(&rig->a, dt_seg(&rig->x, 0, 3000 * i), i, 0);
	dt_no_event(rig->a.request);
	dt_peer_kill(&peer);
	for (uint64_t i = 0; i < 4; i++) {
		event = dt_event(rig->a.request);
		status = event.event_data.dto_completion_event_data.status;
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == i);
		assert_true(status == DAT_DTO_ERR_TRANSPORT || status == DAT_DTO_ERR_FLUSHED);
	}
	expect_recv_flushed(&rig->a, 9);
	dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(dt_ep_state(rig->a.ep), DAT_EP_STATE_DISCONNECTED);
	dt_stays_empty(rig->a.conn);
	expect_quiet(&rig->a);
	rig_end(rig);
}

/* Kills a peer while Writes and Reads are in progress. */
static void check_killed_under_traffic(struct rig *rig, enum dto_kind kind)
{
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	struct far_info info;
	struct dt_peer peer;

	dt_peer_start(&peer, sleeping_child, NULL);
	rig_begin(rig);
	info = far_connect(rig, &peer);
	dt_peer_sync(&peer);
	seg = dt_seg(&rig->x, 0, 4096);
	remote = far_seg(&info, 0, 4096);
	for (int i = 0; status == DAT_DTO_SUCCESS; i++) {
		assert_true(i < 1000000);
		if (i == 50)
			dt_peer_kill(&peer);
		dt_ok(dto_post(kind, rig->a.ep, 1, &seg, 1, &remote, 0));
		status = dt_event_poll(rig->a.request).event_data.dto_completion_event_data.status;
	}
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_BROKEN);
	rig_end(rig);
}

/* DTO-60 DTO-65 CONN-EVT-39 COMPAT-19 */
static void post_rdma__peer_killed__breaks(void **state)
{
	check_killed_under_traffic(*state, DTO_WRITE);
	check_killed_under_traffic(*state, DTO_READ);
}

/* --- contexts of another process --- */

/* Has no LMR of its own and uses the context that the parent sends. */
static void foreign_context_child(struct dt_peer *peer, void *arg)
{
	struct rig *rig = &rig_of_test;
	DAT_LMR_TRIPLET seg;

	(void)arg;
	dt_peer_recv(peer, &seg, sizeof(seg));
	memset(rig, 0, sizeof(*rig));
	dt_ia_open(&rig->ia);
	dt_ep_attr(&rig->ia, &rig->attr_a);
	dt_ep_attr(&rig->ia, &rig->attr_b);
	rig_link(rig);
	dto_refused(rig, DTO_SEND, dto_bad_privilege(DTO_SEND), 1, &seg, NULL, 0);
	dto_refused(rig, DTO_RECV, dto_bad_privilege(DTO_RECV), 1, &seg, NULL, 0);
	dt_ia_abort(&rig->ia);
}

/* DTO-83 LMR-CREATE-47 */
static void post__context_of_another_process__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg;
	struct dt_peer peer;

	dt_peer_start(&peer, foreign_context_child, NULL);
	rig_begin(rig);
	seg = dt_seg(&rig->x, 0, 8);
	dt_peer_send(&peer, &seg, sizeof(seg));
	dt_peer_join(&peer);
	rig_end(rig);
}

/* --- no access after the end --- */

#define AFTER_LEN 40000u

/* Writes continuously until the connection has ended. */
static void writing_child(struct dt_peer *peer, void *arg)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_LMR_TRIPLET seg;
	struct far_info info;
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;

	(void)arg;
	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, AFTER_LEN, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	memset(buf.p, 0x42, AFTER_LEN);
	seg = dt_seg(&buf, 0, AFTER_LEN);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_peer_recv(peer, &info, sizeof(info));
	dt_connect(&ia, ep.ep, info.qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	while (dt_ep_state(ep.ep) != DAT_EP_STATE_DISCONNECTED) {
		ret = dat_ep_post_rdma_write(ep.ep, 1, &seg, dt_cookie(1), &info.buf,
					     DAT_COMPLETION_SUPPRESS_FLAG);
		if (ret != DAT_SUCCESS)
			dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	}
	dt_ia_abort(&ia);
}

/* The other process writes as fast as it can. */
static void check_memory_stays(struct rig *rig, bool by_free)
{
	struct dt_listener listener;
	struct far_info info;
	struct dt_peer peer;

	dt_peer_start(&peer, writing_child, NULL);
	rig_begin(rig);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	dt_listen(&rig->ia, &listener);
	info.qual = listener.qual;
	info.buf = dt_rseg(&rig->y, 0, AFTER_LEN);
	dt_peer_send(&peer, &info, sizeof(info));
	dt_ok(dat_cr_accept(dt_request(&listener), rig->b.ep, 0, NULL));
	dt_expect_conn(rig->b.conn, rig->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	far_spin(rig->y.p + AFTER_LEN - 1, 0x42);
	if (by_free) {
		dt_ok(dat_ep_free(rig->b.ep));
	} else {
		dt_ok(dat_ep_disconnect(rig->b.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	memset(rig->y.p, 0x99, RIG_LEN);
	dt_peer_join(&peer);
	dt_check_bytes(rig->y.p, RIG_LEN, 0x99);
	rig_end(rig);
}

/* DTO-120 EP-DISC-35 EP-FREE-23 */
static void connection_ended__peer_keeps_writing__memory_unchanged(void **state)
{
	for (int round = 0; round < 5; round++) {
		check_memory_stays(*state, false);
		check_memory_stays(*state, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		peer_test(post__peer_stopped__returns),
		peer_test(post_send__peer_killed__transport_error_or_flush),
		peer_test(post_rdma__peer_killed__breaks),
		peer_test(post__context_of_another_process__refused),
		peer_test(connection_ended__peer_keeps_writing__memory_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
