// SPDX-License-Identifier: BSD-2-Clause
/* Threads that attend to the sockets in place of the service thread (engine/attend.h). */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>

#include "keep_stage.h"
#include "core/base/clock.h"
#include "soft/shm/engine/attend.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/engine/service.h"

#define CALLS_MAX 100000
#define MS UINT64_C(1000000)

/* the time for which the other thread keeps the processor that this one yields */
static uint64_t yield_ns;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	uint64_t end = core_now_ns() + yield_ns;

	while (core_now_ns() < end)
		;
	return __real_sched_yield();
}

static struct shm_engine *engine(void)
{
	const struct core_ia *ia = ((const struct core_handle *)stage.ia)->object;

	return soft_adapter_of(ia)->shm;
}

/* A connection has just changed, and no thread attends. */
static void begin(void)
{
	atomic_store(&engine()->changed_ns, core_now_ns() + UINT64_C(60000000000));
	atomic_store(&engine()->pause_end_ns, 0);
	assert_true(shm_attend_begin(engine()));
}

/* Does the epoll set of the service thread report sockets? The kernel lists its entries. */
static bool is_service_told(void)
{
	char name[64], line[160];
	unsigned fd, events;
	bool is_told = false;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", engine()->service.epoll_fd);
	file = fopen(name, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "tfd: %u events: %x", &fd, &events) == 2 &&
		    (int)fd == engine()->sockets_fd)
			is_told = events & EPOLLIN;
	fclose(file);
	return is_told;
}

/* Attends until an event is there. */
static DAT_EVENT attend_until_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	int calls = 0;

	while (core_evd_dequeue(evd, &event) != DAT_SUCCESS) {
		(void)shm_attend(engine());
		assert_true(++calls < CALLS_MAX);
	}
	return event;
}

static void connect_within(DAT_TIMEOUT timeout_us)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&address, stage.qual, timeout_us, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void begin__nothing_changed_lately__no(void **state)
{
	(void)state;
	atomic_store(&engine()->changed_ns, 0);
	assert_false(shm_attend_begin(engine()));
	assert_true(is_service_told());
}

static void begin__connection_changed__yes(void **state)
{
	uint64_t before = core_now_ns();

	(void)state;
	atomic_store(&engine()->changed_ns, 0);
	connect_to(stage.qual);
	assert_true(atomic_load(&engine()->changed_ns) >= before);
}

static void begin__attended__service_thread_is_not_told(void **state)
{
	(void)state;
	begin();
	assert_false(is_service_told());
	assert_false(shm_attend_begin(engine())); /* one at a time */
	shm_attend_end(engine());
	assert_true(is_service_told());
	begin();
	shm_attend_end(engine());
}

static void attend__connection__set_up_and_ended_by_this_thread(void **state)
{
	(void)state;
	begin();
	connect_to(stage.qual);
	stage.cr = attend_until_event(stage.request_evd).event_data.cr_arrival_event_data.cr_handle;
	ok(core_cr_accept(stage.cr, stage.b, 0, NULL));
	for (int i = 0; i < 2; i++)
		assert_int_equal(attend_until_event(stage.evd).event_number,
				 DAT_CONNECTION_EVENT_ESTABLISHED);
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_GRACEFUL_FLAG));
	for (int i = 0; i < 2; i++)
		assert_int_equal(attend_until_event(stage.evd).event_number,
				 DAT_CONNECTION_EVENT_DISCONNECTED);
	shm_attend_end(engine());
}

/* EVD-WAIT-37 */
static void attend_end__request_is_there__service_thread_serves_it(void **state)
{
	(void)state;
	begin();
	connect_to(stage.qual);
	shm_attend_end(engine());
	accept_request();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Does the service thread sleep? */
static bool is_service_asleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	bool is_asleep = false;

	assert_non_null(tasks);
	while ((entry = readdir(tasks)) != NULL) {
		char name[300], line[64];
		FILE *file;

		snprintf(name, sizeof(name), "/proc/self/task/%s/stat", entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(name, "r");
		if (!file)
			continue;
		if (fgets(line, sizeof(line), file))
			is_asleep |= strstr(line, "(dat-shm) S") != NULL;
		fclose(file);
	}
	closedir(tasks);
	return is_asleep;
}

static void await_sleep(void)
{
	int tries = 0;

	while (atomic_load(&engine()->is_watched) || !is_service_asleep())
		assert_true(++tries < 10000 && !poll(NULL, 0, 1));
}

/*
 * The thread attends, but does not look: it has no processor, or runs a handler of a signal. It
 * begins while the service thread sleeps without limit.
 */
static void attend__does_not_look__service_thread_serves_it(void **state)
{
	(void)state;
	await_sleep();
	begin();
	connect_within(DAT_TIMEOUT_INFINITE); /* a deadline would wake the service thread */
	accept_request();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	shm_attend_end(engine());
}

static void limit__connections_change__a_few_milliseconds(void **state)
{
	(void)state;
	atomic_store(&engine()->changed_ns, core_now_ns() + UINT64_C(60000000000));
	assert_in_range(shm_attend_limit(engine(), SOFT_WAIT_NO_LIMIT), MS, 10 * MS);
	assert_in_range(shm_attend_limit(engine(), 60000 * MS), MS, 10 * MS);
	assert_int_equal(shm_attend_limit(engine(), MS), MS);
	assert_int_equal(shm_attend_limit(engine(), 0), 0);
}

static void limit__nothing_changes__none_unless_attended(void **state)
{
	(void)state;
	atomic_store(&engine()->changed_ns, 0);
	assert_true(shm_attend_limit(engine(), SOFT_WAIT_NO_LIMIT) == SOFT_WAIT_NO_LIMIT);
	assert_int_equal(shm_attend_limit(engine(), 60000 * MS), 60000 * MS);
	begin();
	atomic_store(&engine()->changed_ns, 0);
	assert_in_range(shm_attend_limit(engine(), SOFT_WAIT_NO_LIMIT), MS, 10 * MS);
	assert_true(atomic_load(&engine()->is_watched));
	shm_attend_end(engine());
}

/*
 * EVD-WAIT-37: a thread of the consumer drives the connections, and another one attends. What the
 * latter serves is armed again: it makes no ticks, and the service thread sleeps.
 */
static void attend__message_on_an_armed_connection__armed_again(void **state)
{
	DAT_LMR_TRIPLET source = {stage.lkey, 0, (uintptr_t)stage.memory, 8};
	DAT_LMR_TRIPLET target = {stage.lkey, 0, (uintptr_t)stage.memory + LENGTH, 8};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	int calls = 0;

	(void)state;
	connect_to(stage.qual);
	accept_request();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	ok(core_ep_post_recv(stage.b, 1, &target, cookie, 0));
	while (atomic_load(&engine()->disarmed))
		assert_true(++calls < 10000 && !poll(NULL, 0, 1));
	/* as one that attends does, without the service thread in between */
	pthread_mutex_lock(&engine()->service_lock);
	soft_driven_begin(&engine()->driven, core_now_ns());
	atomic_store(&engine()->is_unattended, false);
	memset(stage.memory, 7, LENGTH);
	ok(core_ep_post_send(stage.a, 1, &source, cookie, 0));
	for (calls = 0; stage.memory[LENGTH] != 7; calls++) {
		assert_true(calls < CALLS_MAX);
		(void)shm_service_sockets(engine());
	}
	while (shm_service_sockets(engine()) > 0) /* the answer */
		;
	assert_int_equal(atomic_load(&engine()->disarmed), 0);
	pthread_mutex_unlock(&engine()->service_lock);
}

/* The service thread does not wait for a thread that attends and is not at work. */
static void attend__not_at_work__service_thread_keeps_deadlines(void **state)
{
	(void)state;
	begin();
	connect_within(1000);
	expect(DAT_CONNECTION_EVENT_TIMED_OUT);
	shm_attend_end(engine());
}

static void attend__processor_lost__not_again_for_a_while(void **state)
{
	int calls = 0;

	(void)state;
	begin();
	while (shm_attend(engine()) != 0) /* on a busy machine, it may be lost now and then */
		assert_true(++calls < 1000);
	yield_ns = 1000000;
	assert_int_equal(shm_attend(engine()), -1);
	yield_ns = 0;
	shm_attend_end(engine());
	assert_true(atomic_load(&engine()->pause_end_ns) > 0);
	atomic_store(&engine()->pause_end_ns, UINT64_MAX);
	assert_false(shm_attend_begin(engine()));
	atomic_store(&engine()->pause_end_ns, core_now_ns());
	begin();
	shm_attend_end(engine());
}

/* If the service thread is at work, the other one does not wait for it. */
static void attend__service_thread_at_work__nothing(void **state)
{
	DAT_EVENT event;

	(void)state;
	begin();
	pthread_mutex_lock(&engine()->service_lock);
	connect_to(stage.qual);
	assert_true(shm_attend(engine()) <= 0);
	assert_int_equal(core_evd_dequeue(stage.request_evd, &event), DAT_QUEUE_EMPTY);
	pthread_mutex_unlock(&engine()->service_lock);
	(void)attend_until_event(stage.request_evd);
	shm_attend_end(engine());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(begin__nothing_changed_lately__no, open_stage,
						close_stage),
		cmocka_unit_test_setup_teardown(begin__connection_changed__yes, open_stage,
						close_stage),
		cmocka_unit_test_setup_teardown(begin__attended__service_thread_is_not_told,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(attend__connection__set_up_and_ended_by_this_thread,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(
			attend_end__request_is_there__service_thread_serves_it, open_stage,
			close_stage),
		cmocka_unit_test_setup_teardown(attend__does_not_look__service_thread_serves_it,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(limit__connections_change__a_few_milliseconds,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(limit__nothing_changes__none_unless_attended,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(attend__message_on_an_armed_connection__armed_again,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(attend__not_at_work__service_thread_keeps_deadlines,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(attend__processor_lost__not_again_for_a_while,
						open_stage, close_stage),
		cmocka_unit_test_setup_teardown(attend__service_thread_at_work__nothing, open_stage,
						close_stage),
	};

	add_adapter("keep", "lo");
	return cmocka_run_group_tests_name("shm attend", tests, NULL, NULL);
}
