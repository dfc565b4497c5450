// SPDX-License-Identifier: BSD-2-Clause
/* What dat_stat says of this process, after operations whose number and size are known. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn_util.h"

#define TEXT_MAX 65536u
#define WRITES 50u

/* What dat_stat --json prints for this process; the caller frees it. */
static char *stat_json(void)
{
	char *text = calloc(1, TEXT_MAX);
	char command[512];
	size_t len;
	FILE *pipe;

	assert_non_null(text);
	snprintf(command, sizeof(command), "%s/tools/dat_stat --json --pid %d",
		 getenv("OPENDAT_BUILD"), (int)getpid());
	pipe = popen(command, "re");
	assert_non_null(pipe);
	len = fread(text, 1, TEXT_MAX - 1, pipe);
	assert_true(len > 0 && len < TEXT_MAX - 1);
	assert_int_equal(pclose(pipe), 0);
	return text;
}

/* How often the state of this process contains that text. */
static unsigned int stat_count(const char *part)
{
	char *text = stat_json();
	unsigned int count = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	free(text);
	return count;
}

static void stat_has(const char *part, unsigned int times)
{
	unsigned int count = stat_count(part);

	if (count != times)
		fail_msg("%u times instead of %u: %s in %s", count, times, part, stat_json());
}

/* The words that the last RDMA operation may have left as path. */
static const char *expected_path(void)
{
	const char *copy = getenv("DAT_COPY");
	const char *transport = getenv("DAT_TRANSPORT");

	if (strncmp(dt_adapter(), "verbs", 5) == 0)
		return "\"path\":\"verbs\"";
	if (transport && strcmp(transport, "tcp") == 0)
		return "\"path\":\"tcp\"";
	if (copy && strcmp(copy, "ring") == 0)
		return "\"path\":\"ring\"";
	return copy && strcmp(copy, "map") == 0 ? "\"path\":\"map\"" : "\"path\":\"cma\"";
}

static void rdma(struct conn_fixture *f, bool is_read, size_t len)
{
	DAT_LMR_TRIPLET local = dt_seg(&f->buf, 0, len);
	DAT_RMR_TRIPLET remote = dt_rseg(&f->buf, CONN_BUF_LEN, len);

	if (is_read)
		dt_ok(dat_ep_post_rdma_read(f->a.ep, 1, &local, dt_cookie(9), &remote, 0));
	else
		dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &local, dt_cookie(9), &remote, 0));
	dt_expect_dto(f->a.request, f->a.ep, 9, DAT_DTO_SUCCESS, len);
}

/* Two messages each way, WRITES Writes and a Read. */
static void stat__known_operations__counted(void **state)
{
	struct conn_fixture *f = *state;

	stat_has("\"state\":\"unconnected\",\"path\":\"-\"", 2);
	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
	for (unsigned int i = 1; i < WRITES; i++)
		rdma(f, false, 8);
	rdma(f, true, 24);
	rdma(f, false, 100);
	stat_has("\"state\":\"connected\"", 2);
	stat_has("\"connections\":1", 2);
	stat_has("\"operations\":{\"send\":2,\"write\":50,\"read\":1,\"bind\":0,\"receive\":2}", 1);
	stat_has("\"operations\":{\"send\":2,\"write\":0,\"read\":0,\"bind\":0,\"receive\":2}", 1);
	stat_has("\"write\":492,\"read\":24,", 1);
	stat_has("\"requests\":0,\"receives\":0", 2);
}

/* Memory is mapped after some uses, by another thread. */
static bool has_expected_path(void *arg)
{
	rdma(arg, false, 8);
	return stat_count(expected_path()) > 0;
}

static void stat__rdma__path_shown(void **state)
{
	struct conn_fixture *f = *state;

	conn_link(f, &f->a, &f->b);
	dt_until(has_expected_path, f);
}

/* Posted and flushed Receives; the numbers survive other queues. */
static void stat__flushed_receives__counted_apart(void **state)
{
	struct conn_fixture *f = *state;

	conn_link(f, &f->a, &f->b);
	for (uint64_t i = 0; i < 3; i++)
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, i);
	stat_has("\"requests\":0,\"receives\":3", 1);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	conn_expect_flushes(&f->a, 0, 3);
	stat_has("\"state\":\"disconnected\"", 2);
	stat_has("\"failed\":0,\"flushed\":3", 1);
}

/* Only what dat_ep_modify replaces must not be lost. */
static void stat__queues_replaced__still_counted(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EP_PARAM param;

	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	param = conn_ep_query(f->a.ep);
	param.ep_attr.max_request_dtos++;
	dt_ok(dat_ep_modify(f->a.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
	stat_has("\"operations\":{\"send\":1,\"write\":0,\"read\":0,\"bind\":0,\"receive\":1}", 2);
	stat_has("\"state\":\"unconnected\",\"path\":\"-\"", 1);
}

/* Keys and addresses of memory are not shown. */
static void stat__region__without_key_and_address(void **state)
{
	struct conn_fixture *f = *state;
	char key[32];

	stat_has("\"remote_read\":true,\"remote_write\":true", 1);
	snprintf(key, sizeof(key), "%u", dt_rseg(&f->buf, 0, 1).rmr_context);
	assert_int_equal(stat_count(key), 0);
	snprintf(key, sizeof(key), "%llu",
		 (unsigned long long)dt_rseg(&f->buf, 0, 1).target_address);
	assert_int_equal(stat_count(key), 0);
}

/* A child after fork has none of the parent's objects. */
static void stat__forked_child__has_nothing(void **state)
{
	int status;
	pid_t child;

	(void)state;
	child = fork();
	if (!child) {
		char command[512];

		snprintf(command, sizeof(command), "%s/tools/dat_stat --pid %d 2>/dev/null",
			 getenv("OPENDAT_BUILD"), (int)getpid());
		_exit(WEXITSTATUS(system(command)));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 3);
}

/* Where a tracer is restricted, the kernel refuses; the message of dat_stat says so. */
static int check_permission(void **state)
{
	char command[512];

	(void)state;
	snprintf(command, sizeof(command), "%s/tools/dat_stat --pid %d 2>&1 | grep -q permission",
		 getenv("OPENDAT_BUILD"), (int)getpid());
	return system(command) == 0 ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(stat__known_operations__counted),
		conn_test(stat__rdma__path_shown),
		conn_test(stat__flushed_receives__counted_apart),
		conn_test(stat__queues_replaced__still_counted),
		conn_test(stat__region__without_key_and_address),
		conn_test(stat__forked_child__has_nothing),
	};

	if (check_permission(NULL)) {
		puts("skipped: this process may not be read (kernel.yama.ptrace_scope)");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
