// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a registration while four other processes write through it: after the call has
 * returned no byte changes. The registration ends by a free, by an abrupt close, by removing the
 * memory, or while a writer is stopped.
 */
#include "conf.h"

#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>

#define WRITERS 4
#define DEPTH 4
#define ROUNDS 4
#define SMALL_ROUNDS 25
#define SHARE (256u * 1024)	 /* bytes that each writer owns of the target */
#define SMALL_SHARE 64u		 /* small enough for a copy without a fence */
#define BIG_SHARE (1024u * 1024) /* a writer is often stopped in the middle of it */
#define PEER_TIMEOUT_MS 300

/* The order for a writer at the start of a round; qual 0 ends the writer. */
struct order {
	DAT_CONN_QUAL qual;
	DAT_RMR_TRIPLET target;
};

/* The report of a writer at the end of a round. */
struct report {
	DAT_DTO_COMPLETION_STATUS first_error;
	DAT_EVENT_NUMBER conn_event;
};

/* --- the writers --- */

static void post_one(struct dt_ep *ep, struct dt_buf *source, uint64_t sequence,
		     const DAT_RMR_TRIPLET *target)
{
	DAT_LMR_TRIPLET from = dt_seg(source, 0, target->segment_length);

	memset(source->p, (int)(sequence % 251) + 1, target->segment_length);
	dt_ok(dat_ep_post_rdma_write(ep->ep, 1, &from, dt_cookie(sequence), target,
				     DAT_COMPLETION_DEFAULT_FLAG));
}

/* Writes different bytes each time until a Write fails. */
static DAT_DTO_COMPLETION_STATUS write_for_ever(struct dt_ep *ep, struct dt_buf source[DEPTH],
						const DAT_RMR_TRIPLET *target)
{
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
	uint64_t posted = 0, done = 0;

	while (status == DAT_DTO_SUCCESS) {
		while (posted - done < DEPTH) {
			post_one(ep, &source[posted % DEPTH], posted, target);
			posted++;
		}
		const DAT_EVENT event = dt_event(ep->request);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;

		assert_true(dto->user_cookie.as_64 == done);
		status = dto->status;
		done++;
	}
	for (; done < posted; done++)
		dt_expect_dto(ep->request, ep->ep, done, DAT_DTO_ERR_FLUSHED, 0);
	return status;
}

static void writer(struct dt_peer *peer, void *arg)
{
	const size_t share = *(size_t *)arg;
	struct dt_buf source[DEPTH];
	struct dt_ia ia;
	struct dt_ep ep;
	struct order order;
	struct report report;

	dt_ia_open(&ia);
	for (size_t i = 0; i < DEPTH; i++)
		dt_buf_create(&ia, ia.pz, &source[i], share, CONF_LOCAL);
	for (;;) {
		dt_peer_recv(peer, &order, sizeof(order));
		if (order.qual == 0)
			break;
		dt_ep_create(&ia, ia.pz, NULL, &ep);
		dt_connect(&ia, ep.ep, order.qual);
		dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		report.first_error = write_for_ever(&ep, source, &order.target);
		report.conn_event = dt_event(ep.conn).event_number;
		dt_ep_free(&ep);
		dt_peer_send(peer, &report, sizeof(report));
	}
	for (size_t i = 0; i < DEPTH; i++)
		dt_buf_free(&source[i]);
	dt_ia_close(&ia);
}

/* --- the target --- */

struct target {
	struct dt_ia ia;
	struct dt_ep ep[WRITERS];
	struct dt_buf buf;
	struct dt_peer peer[WRITERS];
	unsigned char *snapshot;
	size_t share;
	size_t writers;
};

static void start(struct target *target, size_t writers, size_t share)
{
	memset(target, 0, sizeof(*target));
	target->writers = writers;
	target->share = share;
	target->snapshot = malloc(writers * share);
	assert_non_null(target->snapshot);
	for (size_t i = 0; i < writers; i++)
		dt_peer_start(&target->peer[i], writer, &target->share);
}

static void stop(struct target *target)
{
	const struct order end = {.qual = 0};

	for (size_t i = 0; i < target->writers; i++) {
		dt_peer_send(&target->peer[i], &end, sizeof(end));
		dt_peer_join(&target->peer[i]);
	}
	free(target->snapshot);
}

/* Reads a byte while other processes write it. A race, and harmless for single bytes. */
__attribute__((no_sanitize("thread"), noinline)) static unsigned char peek(const unsigned char *p)
{
	return *(const volatile unsigned char *)p;
}

struct share_watch {
	const unsigned char *p;
	unsigned char seen;
};

static bool has_changed(void *arg)
{
	struct share_watch *watch = arg;

	return peek(watch->p) != watch->seen;
}

/* Waits until every writer writes: the last byte of its share has changed twice. */
static void wait_for_traffic(struct target *target)
{
	for (size_t i = 0; i < target->writers; i++) {
		struct share_watch watch = {.p = target->buf.p + (i + 1) * target->share - 1};

		for (int change = 0; change < 2; change++) {
			watch.seen = peek(watch.p);
			dt_until(has_changed, &watch);
		}
	}
}

/* Opens an instance, registers `memory` and starts all writers. */
static void start_writers(struct target *target, void *memory)
{
	struct dt_listener listener;
	struct order order;

	dt_ia_open(&target->ia);
	dt_lmr_create(&target->ia, target->ia.pz, memory, target->writers * target->share,
		      DAT_MEM_PRIV_ALL_FLAG, &target->buf);
	dt_listen(&target->ia, &listener);
	order.qual = listener.qual;
	for (size_t i = 0; i < target->writers; i++) {
		order.target = dt_rseg(&target->buf, i * target->share, target->share);
		dt_ep_create(&target->ia, target->ia.pz, NULL, &target->ep[i]);
		dt_peer_send(&target->peer[i], &order, sizeof(order));
		dt_ok(dat_cr_accept(dt_request(&listener), target->ep[i].ep, 0, NULL));
		dt_expect_conn(target->ep[i].conn, target->ep[i].ep,
			       DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	dt_unlisten(&listener);
	wait_for_traffic(target);
}

static void take_snapshot(struct target *target)
{
	memcpy(target->snapshot, target->buf.p, target->writers * target->share);
}

static void check_snapshot(struct target *target)
{
	assert_memory_equal(target->snapshot, target->buf.p, target->writers * target->share);
}

static struct report await_report(struct target *target, size_t i)
{
	struct report report;

	dt_peer_recv(&target->peer[i], &report, sizeof(report));
	return report;
}

static void close_target(struct target *target)
{
	for (size_t i = 0; i < target->writers; i++)
		dt_ep_free(&target->ep[i]);
	dt_ia_close(&target->ia);
}

/* --- the tests --- */

static void check_freed_under_traffic(size_t share, int rounds)
{
	struct target target;
	unsigned char *memory = dt_mem_alloc(WRITERS * share);

	start(&target, WRITERS, share);
	for (int round = 0; round < rounds; round++) {
		start_writers(&target, memory);
		dt_ok(dat_lmr_free(target.buf.lmr));
		take_snapshot(&target);
		for (size_t i = 0; i < WRITERS; i++) {
			const struct report report = await_report(&target, i);

			assert_int_equal(report.first_error, DAT_DTO_ERR_REMOTE_ACCESS);
			assert_int_equal(report.conn_event, DAT_CONNECTION_EVENT_BROKEN);
			dt_expect_conn(target.ep[i].conn, target.ep[i].ep,
				       DAT_CONNECTION_EVENT_BROKEN);
		}
		check_snapshot(&target);
		close_target(&target);
	}
	stop(&target);
	dt_mem_free(memory, WRITERS * share);
}

/* LMR-FREE-07 LMR-FREE-08 LMR-FREE-10 LMR-FREE-21 DTO-97 */
static void lmr_free__four_processes_writing__no_byte_changes_afterwards(void **state)
{
	(void)state;
	check_freed_under_traffic(SHARE, ROUNDS);
}

/* LMR-FREE-07 LMR-FREE-21 DTO-97 */
static void lmr_free__four_processes_writing_little__no_byte_changes_afterwards(void **state)
{
	(void)state;
	check_freed_under_traffic(SMALL_SHARE, SMALL_ROUNDS);
}

/* IA-CLOSE-26 IA-CLOSE-12 IA-CLOSE-08 IA-CLOSE-23 */
static void ia_close__four_processes_writing__no_byte_changes_afterwards(void **state)
{
	struct target target;
	unsigned char *memory = dt_mem_alloc(WRITERS * SHARE);

	(void)state;
	start(&target, WRITERS, SHARE);
	for (int round = 0; round < ROUNDS; round++) {
		start_writers(&target, memory);
		dt_ia_abort(&target.ia);
		take_snapshot(&target);
		for (size_t i = 0; i < WRITERS; i++) {
			const struct report report = await_report(&target, i);

			assert_true(report.conn_event == DAT_CONNECTION_EVENT_BROKEN ||
				    report.conn_event == DAT_CONNECTION_EVENT_DISCONNECTED);
		}
		check_snapshot(&target);
		memset(memory, 0xfe, WRITERS * SHARE);
		dt_check_bytes(memory, WRITERS * SHARE, 0xfe);
	}
	stop(&target);
	dt_mem_free(memory, WRITERS * SHARE);
}

/* Freeing the region ends every writer that still runs. */
static void end_after_loss(struct target *target)
{
	dt_ok(dat_lmr_free(target->buf.lmr));
	for (size_t i = 0; i < target->writers; i++) {
		assert_int_not_equal(await_report(target, i).first_error, DAT_DTO_SUCCESS);
		dt_expect_conn(target->ep[i].conn, target->ep[i].ep, DAT_CONNECTION_EVENT_BROKEN);
	}
	close_target(target);
}

/* LMR-USE-14 */
static void munmap__four_processes_writing__others_unaffected(void **state)
{
	const size_t len = WRITERS * SHARE;
	struct target target;

	(void)state;
	start(&target, WRITERS, SHARE);
	for (int round = 0; round < 2; round++) {
		unsigned char *memory = dt_mem_alloc(len);

		start_writers(&target, memory);
		/* Unmaps the memory and reserves its addresses. */
		assert_ptr_equal(mmap(memory, len, PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
				      0),
				 memory);
		end_after_loss(&target);
		dt_mem_free(memory, len);
	}
	stop(&target);
}

/* LMR-USE-14 */
static void ftruncate__four_processes_writing__others_unaffected(void **state)
{
	const size_t len = WRITERS * SHARE;
	struct target target;

	(void)state;
	start(&target, WRITERS, SHARE);
	for (int round = 0; round < 2; round++) {
		const int fd = memfd_create("revoke", MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		unsigned char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		assert_ptr_not_equal(memory, MAP_FAILED);
		start_writers(&target, memory);
		assert_int_equal(ftruncate(fd, 0), 0);
		end_after_loss(&target);
		assert_int_equal(munmap(memory, len) | close(fd), 0);
	}
	stop(&target);
}

/* --- a stopped writer --- */

struct bystander {
	struct dt_ia *ia;
	atomic_bool end;
	atomic_uint calls;
};

/* Other calls on the same instance while a free waits. */
static void *make_other_calls(void *arg)
{
	struct bystander *bystander = arg;
	DAT_PZ_PARAM param;
	DAT_PZ_HANDLE pz;

	while (!atomic_load(&bystander->end)) {
		if (dat_pz_query(bystander->ia->pz, DAT_PZ_FIELD_ALL, &param) != DAT_SUCCESS ||
		    dat_pz_create(bystander->ia->ia, &pz) != DAT_SUCCESS ||
		    dat_pz_free(pz) != DAT_SUCCESS)
			return bystander;
		atomic_fetch_add(&bystander->calls, 1);
	}
	return NULL;
}

static bool has_called(void *arg)
{
	struct bystander *bystander = arg;

	return atomic_load(&bystander->calls) > 0;
}

/* Ends the region while the writer is stopped. That takes at most the time-out. */
static void revoke_from_stopped(struct target *target, DAT_RETURN (*revoke)(struct target *target))
{
	const uint64_t before = dt_now_us();

	dt_peer_stop(&target->peer[0]);
	dt_ok(revoke(target));
	const uint64_t took_us = dt_now_us() - before;

	take_snapshot(target);
	assert_true(took_us < PEER_TIMEOUT_MS * 1000 + 5000000u);
}

/* Continues the writer, whose Write must fail without a change of the memory. */
static void continue_in_vain(struct target *target)
{
	check_snapshot(target);
	dt_peer_continue(&target->peer[0]);
	assert_int_not_equal(await_report(target, 0).first_error, DAT_DTO_SUCCESS);
	check_snapshot(target);
}

static DAT_RETURN free_region(struct target *target)
{
	return dat_lmr_free(target->buf.lmr);
}

static DAT_RETURN close_instance(struct target *target)
{
	return dat_ia_close(target->ia.ia, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN free_beside_a_bystander(struct target *target)
{
	struct bystander bystander = {.ia = &target->ia};
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, make_other_calls, &bystander), 0);
	dt_until(has_called, &bystander);
	const unsigned calls = atomic_load(&bystander.calls);
	const uint64_t before = dt_now_us();
	const DAT_RETURN ret = free_region(target);

	if (dt_now_us() - before > PEER_TIMEOUT_MS * 1000 / 2)
		assert_true(atomic_load(&bystander.calls) > calls);
	atomic_store(&bystander.end, true);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	return ret;
}

/* applies from the next open: the default of 5 s would make the tests slow */
static int shorten_time_out(void **state)
{
	(void)state;
	return setenv("DAT_PEER_TIMEOUT_MS", "300", 1);
}

static int restore_time_out(void **state)
{
	(void)state;
	return unsetenv("DAT_PEER_TIMEOUT_MS");
}

/* LMR-FREE-21 */
static void lmr_free__writer_stopped_in_a_write__returns_in_time(void **state)
{
	struct target target;
	unsigned char *memory = dt_mem_alloc(BIG_SHARE);

	(void)state;
	start(&target, 1, BIG_SHARE);
	for (int round = 0; round < ROUNDS; round++) {
		start_writers(&target, memory);
		revoke_from_stopped(&target, free_beside_a_bystander);
		continue_in_vain(&target);
		dt_expect_conn(target.ep[0].conn, target.ep[0].ep, DAT_CONNECTION_EVENT_BROKEN);
		close_target(&target);
	}
	stop(&target);
	dt_mem_free(memory, BIG_SHARE);
}

/* LMR-FREE-21 IA-CLOSE-26 IA-CLOSE-13 */
static void ia_close__writer_stopped_in_a_write__returns_in_time(void **state)
{
	struct target target;
	unsigned char *memory = dt_mem_alloc(BIG_SHARE);

	(void)state;
	start(&target, 1, BIG_SHARE);
	for (int round = 0; round < ROUNDS; round++) {
		start_writers(&target, memory);
		revoke_from_stopped(&target, close_instance);
		continue_in_vain(&target);
	}
	stop(&target);
	dt_mem_free(memory, BIG_SHARE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lmr_free__four_processes_writing__no_byte_changes_afterwards),
		cmocka_unit_test(
			lmr_free__four_processes_writing_little__no_byte_changes_afterwards),
		cmocka_unit_test(ia_close__four_processes_writing__no_byte_changes_afterwards),
		cmocka_unit_test(munmap__four_processes_writing__others_unaffected),
		cmocka_unit_test(ftruncate__four_processes_writing__others_unaffected),
		cmocka_unit_test_setup_teardown(
			lmr_free__writer_stopped_in_a_write__returns_in_time, shorten_time_out,
			restore_time_out),
		cmocka_unit_test_setup_teardown(
			ia_close__writer_stopped_in_a_write__returns_in_time, shorten_time_out,
			restore_time_out),
	};

	return cmocka_run_group_tests_name("lmr revoke", tests, NULL, NULL);
}
