// SPDX-License-Identifier: BSD-2-Clause
/* What the log says (DAT_DBG_TYPE=1) about connections that break and attempts that fail. */
#include <stdio.h>

#include "conn_remote.h"
#include "log_util.h"

static bool has_processes(void)
{
	return strncmp(dt_adapter(), "soft", 4) == 0;
}

/* GEN-30: an endpoint by its number, the peer by its address, the event by its name */
static void log__peer_dies__endpoint_peer_and_cause(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	char process[64];
	const char *text;
	unsigned int ep;

	remote_link_passive(r);
	log_begin();
	snprintf(process, sizeof(process), "with process %d ends: DAT_CONNECTION_EVENT_BROKEN, ",
		 (int)r->peer.pid);
	dt_peer_kill(&r->peer);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_BROKEN);
	text = log_end();
	if (has_processes())
		assert_non_null(strstr(text, process));
	text = strstr(text, "]: error: ep ");
	assert_non_null(text);
	assert_int_equal(sscanf(text, "]: error: ep %u: end of the connection with ", &ep), 1);
	assert_non_null(strstr(text, ": DAT_CONNECTION_EVENT_BROKEN\n"));
	assert_non_null(strstr(text, "127.0.0.1:"));
}

/* GEN-30 */
static void log__nobody_listens__peer_and_event(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CONN_QUAL qual = dt_unused_qual();
	char expected[128];
	const char *line;

	snprintf(expected, sizeof(expected),
		 ": no connection with 127.0.0.1:%llu: DAT_CONNECTION_EVENT_NON_PEER_REJECTED",
		 (unsigned long long)qual);
	log_begin();
	dt_connect(&f->ia, f->a.ep, qual);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	line = log_last_line();
	assert_int_equal(strncmp(line, "ep ", 3), 0);
	assert_non_null(strstr(line, expected));
}

/* GEN-30: the status of the first request that fails is named, too */
static void log__request_fails__operation_and_status(void **state)
{
	struct dt_pair *pair = *state;
	DAT_RMR_TRIPLET remote = {
		.rmr_context = 0xdeadbeef, .target_address = 64, .segment_length = 1};
	struct dt_buf buf;
	DAT_LMR_TRIPLET local;
	const char *text;

	dt_buf_create(&pair->ia, pair->ia.pz, &buf, 64, DAT_MEM_PRIV_ALL_FLAG);
	local = dt_seg(&buf, 0, 1);
	log_begin();
	dt_ok(dat_ep_post_rdma_write(pair->a.ep, 1, &local, dt_cookie(1), &remote, 0));
	dt_expect_dto(pair->a.request, pair->a.ep, 1, DAT_DTO_ERR_REMOTE_ACCESS, DT_ANY_LEN);
	dt_expect_conn(pair->a.conn, pair->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	text = log_end();
	assert_non_null(strstr(text, ": RDMA Write failed: DAT_DTO_ERR_REMOTE_ACCESS\n"));
	dt_buf_free(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		remote_test(log__peer_dies__endpoint_peer_and_cause),
		conn_test(log__nobody_listens__peer_and_event),
		dt_pair_test(log__request_fails__operation_and_status),
	};

	log_capture_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
