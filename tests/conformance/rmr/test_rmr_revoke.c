// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a window while another process writes through it: by dat_rmr_free, by a bind elsewhere
 * and by an unbind. The other process writes for ever, is stopped by a signal, or is held in the
 * very middle of one copy by a page that it may not read.
 */
#include "bind_util.h"
#include "dto_peer.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>

#define PEER_TIMEOUT_MS 700
#define SLACK_US 5000000u
#define WINDOW (48u * 1024)
#define HELD_LEN 8192u
#define WARM_UP_US 20000u /* the peer's memory is mapped some time after its first use */

enum verb { WRITE_FOR_EVER, WRITE_ONCE, WRITE_HELD, END };

struct order {
	enum verb verb;
	unsigned warm_up_us; /* WRITE_HELD */
	DAT_RMR_TRIPLET target;
};

/* --- the other process --- */

static struct {
	int fd;
	unsigned char *page;
	size_t size;
	volatile sig_atomic_t count;
} held;

/* The copy has come to the locked page: says so, and goes on when it is told. */
static void on_fault(int number)
{
	char byte = 'h';

	(void)number;
	held.count++;
	if (write(held.fd, &byte, 1) != 1 || read(held.fd, &byte, 1) != 1 ||
	    mprotect(held.page, held.size, PROT_READ | PROT_WRITE))
		_exit(1);
}

static DAT_DTO_COMPLETION_STATUS write_once(struct far_end *far, DAT_RMR_TRIPLET target,
					    unsigned char value)
{
	const size_t len = target.segment_length;

	memset(far->buf.p, value, len);
	post_write(&far->ep, dt_seg(&far->buf, 0, len), target, value, DAT_COMPLETION_DEFAULT_FLAG);
	return dt_event(far->ep.request).event_data.dto_completion_event_data.status;
}

static DAT_DTO_COMPLETION_STATUS write_for_ever(struct far_end *far, DAT_RMR_TRIPLET target)
{
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;

	for (unsigned i = 0; status == DAT_DTO_SUCCESS; i++)
		status = write_once(far, target, (unsigned char)(i % 251 + 1));
	return status;
}

/* 'h' from the handler when the copy is held; 'f' when it failed instead, for it took another path
 */
static DAT_DTO_COMPLETION_STATUS write_held(struct dt_peer *peer, struct far_end *far,
					    const struct order *order)
{
	const uint64_t warm = dt_now_us() + order->warm_up_us;
	DAT_RMR_TRIPLET target = order->target;
	struct sigaction action = {.sa_handler = on_fault};
	DAT_DTO_COMPLETION_STATUS status;
	const char failed = 'f';

	held.fd = peer->fd;
	held.size = (size_t)sysconf(_SC_PAGESIZE);
	held.page = far->buf.p + HELD_LEN - held.size;
	target.segment_length = 64;
	do
		assert_int_equal(write_once(far, target, 1), DAT_DTO_SUCCESS);
	while (dt_now_us() < warm);
	target.segment_length = HELD_LEN;
	assert_int_equal(write_once(far, target, 2), DAT_DTO_SUCCESS);
	memset(far->buf.p, 3, HELD_LEN);
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(held.page, held.size, PROT_NONE), 0);
	post_write(&far->ep, dt_seg(&far->buf, 0, HELD_LEN), target, 3, 0);
	status = dt_event(far->ep.request).event_data.dto_completion_event_data.status;
	assert_int_equal(mprotect(held.page, held.size, PROT_READ | PROT_WRITE), 0);
	if (!held.count)
		dt_peer_send(peer, &failed, 1);
	return status;
}

static void writer(struct dt_peer *peer, void *arg)
{
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
	struct far_end far;
	struct order order;

	(void)arg;
	far_end_open(peer, &far, WINDOW);
	for (;;) {
		dt_peer_recv(peer, &order, sizeof(order));
		if (order.verb == END)
			break;
		if (order.verb == WRITE_FOR_EVER)
			status = write_for_ever(&far, order.target);
		else if (order.verb == WRITE_ONCE)
			status = write_once(&far, order.target, 0x11);
		else
			status = write_held(peer, &far, &order);
		dt_peer_send(peer, &status, sizeof(status));
	}
	dt_ia_abort(&far.ia);
}

/* --- the owner of the window --- */

struct stage {
	struct rig rig; /* a is connected to the writer; b, on which is bound, to the mate */
	struct dt_ep mate;
	struct dt_peer peer;
	DAT_RMR_HANDLE rmr;
	struct dt_buf old, next;
	DAT_RMR_CONTEXT context;
	unsigned char snapshot[WINDOW];
};

static struct stage stage_of_test;

static struct stage *stage_open(void)
{
	struct stage *stage = &stage_of_test;
	struct rig *rig = &stage->rig;

	memset(stage, 0, sizeof(*stage));
	dt_peer_start(&stage->peer, writer, NULL);
	rig_begin(rig);
	(void)far_connect(rig, &stage->peer);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &rig->b);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &stage->mate);
	dt_ep_link(&rig->ia, &rig->b, &stage->mate);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, WINDOW, BIND_LOCAL, &stage->old);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, WINDOW, BIND_LOCAL, &stage->next);
	stage->rmr = rmr_create(rig);
	stage->context = bind_now(&rig->b, stage->rmr, dt_seg(&stage->old, 0, WINDOW), BIND_REMOTE);
	return stage;
}

static void stage_close(struct stage *stage)
{
	const struct order end = {.verb = END};

	dt_peer_send(&stage->peer, &end, sizeof(end));
	dt_peer_join(&stage->peer);
	rig_end(&stage->rig);
}

static void order_writer(struct stage *stage, enum verb verb, unsigned warm_up_us)
{
	const struct order order = {verb, warm_up_us,
				    y_seg(&stage->rig, stage->context, 0, WINDOW)};

	dt_peer_send(&stage->peer, &order, sizeof(order));
}

static void tell(struct stage *stage, enum verb verb)
{
	order_writer(stage, verb, 0);
}

static DAT_DTO_COMPLETION_STATUS hear(struct stage *stage)
{
	DAT_DTO_COMPLETION_STATUS status;

	dt_peer_recv(&stage->peer, &status, sizeof(status));
	return status;
}

/* A byte that others write at this moment; a race by design, which is all right for one byte. */
__attribute__((no_sanitize("thread"), noinline)) static unsigned char peek(const unsigned char *p)
{
	return *(const volatile unsigned char *)p;
}

struct watch {
	const unsigned char *p;
	unsigned char seen;
};

static bool has_changed(void *arg)
{
	struct watch *watch = arg;

	return peek(watch->p) != watch->seen;
}

static void let_loose(struct stage *stage)
{
	struct watch watch = {.p = stage->rig.y.p + WINDOW - 1};

	tell(stage, WRITE_FOR_EVER);
	for (int change = 0; change < 3; change++) {
		watch.seen = peek(watch.p);
		dt_until(has_changed, &watch);
	}
}

static void snapshot(struct stage *stage)
{
	memcpy(stage->snapshot, stage->rig.y.p, WINDOW);
}

static size_t changed_since(struct stage *stage)
{
	size_t changed = 0;

	for (size_t i = 0; i < WINDOW; i++)
		changed += stage->rig.y.p[i] != stage->snapshot[i];
	return changed;
}

static void writer_broken(struct stage *stage)
{
	dt_expect_conn(stage->rig.a.conn, stage->rig.a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- the ways to end a window --- */

enum way { FREE, REBIND, UNBIND };
#define WAYS 3

/* The call; a bind's completion is still to come. */
static void begin_end(struct stage *stage, enum way way)
{
	if (way == FREE)
		dt_ok(dat_rmr_free(stage->rmr));
	else if (way == REBIND)
		(void)bind_post(&stage->rig.b, stage->rmr, dt_seg(&stage->next, 0, WINDOW),
				BIND_REMOTE, 7, 0);
	else
		unbind_post(&stage->rig.b, stage->rmr, 7);
}

static void end_window(struct stage *stage, enum way way)
{
	begin_end(stage, way);
	if (way != FREE)
		expect_bind(&stage->rig.b, stage->rmr, 7, DAT_DTO_SUCCESS);
}

/* The region is used no more, and what has nothing to do with it works. */
static void check_after(struct stage *stage)
{
	struct rig own = stage->rig;

	dt_ok(dat_lmr_free(stage->old.lmr));
	own.a = stage->mate;
	rig_works(&own);
}

/* --- at full speed --- */

/* RMR-FREE-06 RMR-FREE-08 RMR-BIND-10 RMR-BIND-29 RMR-FREE-03 RMR-FREE-14 DTO-99 */
static void window_ended__process_writing__no_byte_changes_afterwards(void **state)
{
	(void)state;
	for (int round = 0; round < 3 * WAYS; round++) {
		struct stage *stage = stage_open();

		let_loose(stage);
		end_window(stage, round % WAYS);
		snapshot(stage);
		assert_int_equal(hear(stage), DAT_DTO_ERR_REMOTE_ACCESS);
		writer_broken(stage);
		assert_int_equal(changed_since(stage), 0);
		check_after(stage);
		stage_close(stage);
	}
}

/* RMR-FREE-14: wherever the signal happens to stop it */
static void window_ended__process_stopped_while_writing__ends_in_time(void **state)
{
	(void)state;
	for (int round = 0; round < 2 * WAYS; round++) {
		struct stage *stage = stage_open();
		uint64_t begin, took_us;

		let_loose(stage);
		dt_peer_stop(&stage->peer);
		begin = dt_now_us();
		end_window(stage, round % WAYS);
		took_us = dt_now_us() - begin;
		assert_true(took_us < PEER_TIMEOUT_MS * 1000 + SLACK_US);
		snapshot(stage);
		check_after(stage);
		memcpy(stage->snapshot, stage->rig.y.p, WINDOW);
		dt_peer_continue(&stage->peer);
		assert_int_not_equal(hear(stage), DAT_DTO_SUCCESS);
		writer_broken(stage);
		assert_int_equal(changed_since(stage), 0);
		stage_close(stage);
	}
}

/* --- held in the middle of a copy --- */

/* Only a copy between mappings can be held so; false: this path has none. */
static bool hold(struct stage *stage, unsigned warm_up_us)
{
	char answer;

	order_writer(stage, WRITE_HELD, warm_up_us);
	dt_peer_recv(&stage->peer, &answer, 1);
	return answer == 'h';
}

static void let_go(struct stage *stage)
{
	dt_peer_send(&stage->peer, "g", 1);
}

/* Opens a stage with the writer held; skips the test on the other paths. */
static struct stage *stage_open_held(void)
{
	const char *path = getenv("DAT_COPY");

	if (!path || strcmp(path, "map") != 0) {
		print_message("skipped: only a copy between mappings can be held\n");
		skip();
	}
	for (unsigned tries = 0; tries < 8; tries++) {
		struct stage *stage = stage_open();

		if (hold(stage, WARM_UP_US << tries))
			return stage;
		(void)hear(stage); /* the mapping was late */
		writer_broken(stage);
		stage_close(stage);
	}
	fail();
	return NULL;
}

/* Runs dat_rmr_free beside the test. */
struct freer {
	pthread_t thread;
	DAT_RMR_HANDLE rmr;
	DAT_RETURN ret;
	_Atomic bool has_returned;
};

static void *freer_run(void *arg)
{
	struct freer *freer = arg;

	freer->ret = dat_rmr_free(freer->rmr);
	freer->has_returned = true;
	return NULL;
}

static void freer_start(struct freer *freer, DAT_RMR_HANDLE rmr)
{
	memset(freer, 0, sizeof(*freer));
	freer->rmr = rmr;
	assert_int_equal(pthread_create(&freer->thread, NULL, freer_run, freer), 0);
}

static void freer_join(struct freer *freer)
{
	assert_int_equal(pthread_join(freer->thread, NULL), 0);
	dt_ok(freer->ret);
}

/* Calls that have nothing to do with the window, while its end waits. */
static void other_calls(struct stage *stage)
{
	DAT_RMR_HANDLE other = rmr_create(&stage->rig);
	DAT_LMR_TRIPLET seg = dt_seg(&stage->rig.x, 0, 8);
	DAT_PZ_HANDLE pz;

	dt_ok(dat_rmr_free(other));
	dt_ok(dat_pz_create(stage->rig.ia.ia, &pz));
	dt_ok(dat_pz_free(pz));
	dt_ok(dat_ep_post_recv(stage->rig.b.ep, 1, &seg, dt_cookie(5), 0));
	dt_ok(dat_ep_post_send(stage->mate.ep, 1, &seg, dt_cookie(6), 0));
	expect_received(&stage->rig.b, 5, 8);
	expect_sent(&stage->mate, 6, 8);
}

/* RMR-FREE-14 RMR-BIND-02: the bind returns and its event waits, for the copy and no longer */
static void rmr_bind__copy_under_way__event_waits_for_it(void **state)
{
	(void)state;
	for (int way = REBIND; way < WAYS; way++) {
		struct stage *stage = stage_open_held();

		begin_end(stage, way);
		dt_stays_empty(stage->rig.b.request);
		other_calls(stage);
		dt_fails(dat_lmr_free(stage->old.lmr), DAT_INVALID_STATE);
		let_go(stage);
		expect_bind(&stage->rig.b, stage->rmr, 7, DAT_DTO_SUCCESS);
		dt_check_bytes(stage->rig.y.p, HELD_LEN, 3); /* it is whole */
		assert_int_equal(hear(stage), DAT_DTO_SUCCESS);
		tell(stage, WRITE_ONCE);
		assert_int_equal(hear(stage), DAT_DTO_ERR_REMOTE_ACCESS);
		writer_broken(stage);
		check_after(stage);
		stage_close(stage);
	}
}

/* RMR-FREE-14 */
static void rmr_free__copy_under_way__waits_for_it(void **state)
{
	struct stage *stage = stage_open_held();
	const uint64_t end = dt_now_us() + DT_QUIET_US;
	struct freer freer;

	(void)state;
	freer_start(&freer, stage->rmr);
	do {
		assert_false(freer.has_returned);
		sched_yield();
	} while (dt_now_us() < end);
	other_calls(stage);
	let_go(stage);
	freer_join(&freer);
	dt_check_bytes(stage->rig.y.p, HELD_LEN, 3);
	assert_int_equal(hear(stage), DAT_DTO_SUCCESS);
	tell(stage, WRITE_ONCE);
	assert_int_equal(hear(stage), DAT_DTO_ERR_REMOTE_ACCESS);
	writer_broken(stage);
	check_after(stage);
	stage_close(stage);
}

/* RMR-FREE-14: it is not let go: the time-out, and the connection of the one that is held */
static void window_ended__copy_never_ends__time_out(void **state)
{
	(void)state;
	for (int way = FREE; way < WAYS; way++) {
		struct stage *stage = stage_open_held();
		const uint64_t begin = dt_now_us();
		uint64_t took_us;

		end_window(stage, way);
		took_us = dt_now_us() - begin;
		assert_true(took_us >= PEER_TIMEOUT_MS * 900);
		assert_true(took_us < PEER_TIMEOUT_MS * 1000 + SLACK_US);
		writer_broken(stage);
		check_after(stage);
		snapshot(stage);
		let_go(stage);
		assert_int_not_equal(hear(stage), DAT_DTO_SUCCESS);
		assert_int_equal(changed_since(stage), 0);
		tell(stage, WRITE_ONCE);
		assert_int_not_equal(hear(stage), DAT_DTO_SUCCESS);
		assert_int_equal(changed_since(stage), 0);
		stage_close(stage);
	}
}

/* RMR-BIND-39 RMR-FREE-14: flushed while it waits for the copy; the old context works again */
static void rmr_bind__flushed_while_it_waits_for_a_copy__no_effect(void **state)
{
	(void)state;
	for (int way = REBIND; way < WAYS; way++) {
		struct stage *stage = stage_open_held();
		const DAT_LMR_TRIPLET range = dt_seg(&stage->old, 0, WINDOW);

		begin_end(stage, way);
		dt_no_event(stage->rig.b.request);
		dt_ok(dat_ep_disconnect(stage->rig.b.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect_ended(&stage->rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_bind(&stage->rig.b, stage->rmr, 7, DAT_DTO_ERR_FLUSHED);
		rmr_check_bound(stage->rmr, &range, BIND_REMOTE, stage->context);
		dt_ok(dat_lmr_free(stage->next.lmr));
		dt_fails(dat_lmr_free(stage->old.lmr), DAT_INVALID_STATE);
		let_go(stage);
		assert_int_equal(hear(stage), DAT_DTO_SUCCESS);
		tell(stage, WRITE_ONCE);
		assert_int_equal(hear(stage), DAT_DTO_SUCCESS);
		dt_check_bytes(stage->rig.y.p, WINDOW, 0x11);
		stage_close(stage);
	}
}

/* RMR-FREE-14 RMR-FREE-02: the process is killed in the middle of its copy */
static void window_ended__process_killed_in_a_copy__ends(void **state)
{
	(void)state;
	for (int way = FREE; way < WAYS; way++) {
		struct stage *stage = stage_open_held();

		dt_peer_kill(&stage->peer);
		end_window(stage, way);
		writer_broken(stage);
		check_after(stage);
		rig_end(&stage->rig);
	}
}

int main(void)
{
	/* Before the first open: a stopped peer shall not hold up the tests for the default 5 s. */
	setenv("DAT_PEER_TIMEOUT_MS", "700", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_ended__process_writing__no_byte_changes_afterwards),
		cmocka_unit_test(window_ended__process_stopped_while_writing__ends_in_time),
		cmocka_unit_test(rmr_bind__copy_under_way__event_waits_for_it),
		cmocka_unit_test(rmr_free__copy_under_way__waits_for_it),
		cmocka_unit_test(window_ended__copy_never_ends__time_out),
		cmocka_unit_test(rmr_bind__flushed_while_it_waits_for_a_copy__no_effect),
		cmocka_unit_test(window_ended__process_killed_in_a_copy__ends),
	};

	return cmocka_run_group_tests_name("rmr revoke", tests, NULL, NULL);
}
