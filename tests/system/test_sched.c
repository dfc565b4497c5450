// SPDX-License-Identifier: BSD-2-Clause
/*
 * The policy and the processors of the library's threads: a real-time thread that polls without end
 * does not keep them from its processor.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ability.h"
#include "cno_util.h"
#include "dt.h"
#include "log_util.h"

#define PRIORITY 10
#define SPIN_S 5 /* a real-time process that spins for so long is killed */
#define LEN 64u
#define TASKS_MAX 32u

/* --- this process --- */

static bool may_be_realtime(int priority)
{
	const struct sched_param param = {.sched_priority = priority}, none = {0};

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return false;
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	return true;
}

/* The last processor that this process may use, and their number. */
static int last_cpu(int *count_out)
{
	cpu_set_t cpus;
	int last = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			last = cpu;
	*count_out = CPU_COUNT(&cpus);
	return last;
}

static void take_policy(int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};
	const struct rlimit limit = {.rlim_cur = SPIN_S * 1000000, .rlim_max = SPIN_S * 1000000};

	assert_int_equal(setrlimit(RLIMIT_RTTIME, &limit), 0);
	assert_int_equal(sched_setscheduler(0, policy, &param), 0);
}

/* --- the threads of the library --- */

struct task {
	char name[16];
	int policy, priority;
	cpu_set_t cpus;
};

static bool read_name(const char *id, char name_out[16])
{
	char path[320];
	FILE *file;
	bool is_read;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", id);
	file = fopen(path, "re");
	is_read = file && fscanf(file, "%15s", name_out) == 1;
	if (file)
		fclose(file);
	return is_read;
}

/* Those whose name begins with "dat-". */
static unsigned read_tasks(struct task tasks[TASKS_MAX])
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		struct task *task = &tasks[count];
		struct sched_param param;
		int id = atoi(entry->d_name);

		assert_true(count < TASKS_MAX);
		if (!id || !read_name(entry->d_name, task->name) ||
		    strncmp(task->name, "dat-", 4) != 0)
			continue;
		task->policy = sched_getscheduler(id);
		assert_int_equal(sched_getparam(id, &param), 0);
		task->priority = param.sched_priority;
		assert_int_equal(sched_getaffinity(id, sizeof(task->cpus), &task->cpus), 0);
		count++;
	}
	closedir(folder);
	return count;
}

static bool is_service(const struct task *task)
{
	return strcmp(task->name, "dat-agent") != 0;
}

/* Opens an adapter with all threads that it can have, reads them, and closes it. */
static unsigned tasks_of_adapter(struct task tasks[TASKS_MAX])
{
	struct cno_agent agent = {.body = NULL};
	struct dt_listener listener;
	struct dt_ia ia;
	unsigned count;

	dt_ia_open(&ia);
	dt_listen(&ia, &listener); /* over TCP: starts the thread */
	(void)cno_agent_create(&ia, &agent);
	cno_agent_arm(&agent);
	count = read_tasks(tasks);
	cno_agent_disarm(&agent);
	dt_ia_abort(&ia);
	return count;
}

struct expected {
	int policy, priority; /* of the thread that opens */
	int service_priority;
};

static void check_policy(struct dt_peer *peer, void *arg)
{
	const struct expected *expected = arg;
	struct task tasks[TASKS_MAX];
	unsigned count;

	(void)peer;
	take_policy(expected->policy, expected->priority);
	count = tasks_of_adapter(tasks);
	assert_int_equal(count, 3);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(tasks[i].policy, expected->policy);
		assert_int_equal(tasks[i].priority, expected->service_priority);
	}
}

/* GEN-39 */
static void ia_open__policy_of_the_opener__threads_one_step_above(void **state)
{
	struct expected expected[] = {
		{SCHED_OTHER, 0, 0},
		{SCHED_BATCH, 0, 0},
		{SCHED_FIFO, PRIORITY, PRIORITY + 1},
		{SCHED_RR, PRIORITY, PRIORITY + 1},
		{SCHED_FIFO, sched_get_priority_max(SCHED_FIFO),
		 sched_get_priority_max(SCHED_FIFO)},
	};

	(void)state;
	/* RLIMIT_RTPRIO may permit some priorities */
	ABILITY_NEED(may_be_realtime(sched_get_priority_max(SCHED_FIFO)),
		     "the kernel permits not all of SCHED_FIFO");
	ABILITY_NEED(ability_threads_in_child(), "no threads in a child");
	for (unsigned tcp = 0; tcp < 2; tcp++) {
		for (size_t i = 0; i < COUNT_OF(expected); i++) {
			struct dt_peer peer;

			dt_peer_start(&peer, check_policy, &expected[i]);
			dt_peer_join(&peer);
		}
		setenv("DAT_TRANSPORT", "tcp", 1);
	}
	unsetenv("DAT_TRANSPORT");
}

/* --- a real-time thread that polls --- */

struct target {
	DAT_CONN_QUAL qual;
	DAT_RMR_TRIPLET memory;
};

/* The next event, without a system call that could leave the processor to another thread. */
static DAT_EVENT spin_for(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) != DAT_SUCCESS)
		continue;
	return event;
}

DT_UNORDERED static void spin_for_byte(const volatile unsigned char *byte, unsigned char value)
{
	while (*byte != value)
		continue;
}

static void realtime_side(struct dt_peer *peer, void *arg)
{
	struct dt_listener listener;
	struct target target;
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_LMR_TRIPLET segment;
	DAT_EVENT event;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(*(int *)arg, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	take_policy(SCHED_FIFO, PRIORITY);
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, 2 * LEN, DAT_MEM_PRIV_ALL_FLAG);
	segment = dt_seg(&buf, 0, LEN);
	dt_ok(dat_ep_post_recv(ep.ep, 1, &segment, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	target = (struct target){listener.qual, dt_rseg(&buf, LEN, LEN)};
	dt_peer_send(peer, &target, sizeof(target));
	event = spin_for(listener.evd);
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	dt_ok(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep.ep, 0, NULL));
	event = spin_for(ep.conn);
	assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	event = spin_for(ep.recv);
	assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	dt_check_bytes(buf.p, LEN, 1);
	spin_for_byte(buf.p + 2 * LEN - 1, 1);
	dt_peer_sync(peer);
	dt_ia_abort(&ia);
}

static void run_against_realtime(void)
{
	struct target target;
	struct dt_peer peer;
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_LMR_TRIPLET segment;
	int count, cpu = last_cpu(&count);

	ABILITY_NEED(may_be_realtime(PRIORITY + 1), "the kernel permits no SCHED_FIFO");
	ABILITY_NEED(count > 1, "one processor");
	ABILITY_NEED(ability_threads_in_child(), "no threads in a child");
	dt_peer_start(&peer, realtime_side, &cpu);
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, LEN, DAT_MEM_PRIV_ALL_FLAG);
	memset(buf.p, 1, LEN);
	segment = dt_seg(&buf, 0, LEN);
	dt_peer_recv(&peer, &target, sizeof(target));
	dt_connect(&ia, ep.ep, target.qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_ok(dat_ep_post_send(ep.ep, 1, &segment, dt_cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(ep.request, ep.ep, 2, DAT_DTO_SUCCESS, LEN);
	dt_ok(dat_ep_post_rdma_write(ep.ep, 1, &segment, dt_cookie(3), &target.memory,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(ep.request, ep.ep, 3, DAT_DTO_SUCCESS, LEN);
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	dt_buf_free(&buf);
	dt_ia_abort(&ia);
}

/* GEN-39 */
static void fifo_thread__polls_on_one_processor__messages_arrive(void **state)
{
	(void)state;
	run_against_realtime();
}

/* GEN-39 */
static void fifo_thread__polls_over_tcp__messages_arrive(void **state)
{
	(void)state;
	setenv("DAT_TRANSPORT", "tcp", 1);
	run_against_realtime();
}

static int unset_settings(void **state)
{
	(void)state;
	unsetenv("DAT_TRANSPORT");
	unsetenv("DAT_SERVICE_CPUS");
	return 0;
}

/* --- processors --- */

static void check_cpus(int cpu)
{
	struct task tasks[TASKS_MAX];
	unsigned count = tasks_of_adapter(tasks);
	cpu_set_t own;

	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	assert_true(count >= 2);
	for (unsigned i = 0; i < count; i++) {
		if (!is_service(&tasks[i])) {
			assert_true(CPU_EQUAL(&tasks[i].cpus, &own));
			continue;
		}
		assert_int_equal(CPU_COUNT(&tasks[i].cpus), 1);
		assert_true(CPU_ISSET(cpu, &tasks[i].cpus));
	}
}

/* GEN-39 */
static void service_cpus__one_processor__the_service_threads_are_there(void **state)
{
	int count, cpu = last_cpu(&count);
	char text[16];

	(void)state;
	ABILITY_NEED(count > 1, "one processor");
	snprintf(text, sizeof(text), "%d", cpu);
	setenv("DAT_SERVICE_CPUS", text, 1);
	check_cpus(cpu);
	setenv("DAT_TRANSPORT", "tcp", 1);
	check_cpus(cpu);
}

static void open_is_refused(const char *cpus, const char *why)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_NAME_PTR name = (DAT_NAME_PTR)(uintptr_t)dt_adapter();
	DAT_IA_HANDLE ia;
	const char *text;

	setenv("DAT_SERVICE_CPUS", cpus, 1);
	log_begin();
	dt_fails_with(dat_ia_open(name, 8, &async, &ia), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_DEVICE);
	text = log_end();
	if (!strstr(text, why))
		fail_msg("the log lacks \"%s\":\n%s", why, text);
}

/* GEN-39 */
static void service_cpus__bad_list__open_fails_and_the_log_says_why(void **state)
{
	struct task tasks[TASKS_MAX];

	(void)state;
	open_is_refused("1-0", "DAT_SERVICE_CPUS: \"1-0\" is not a list of processors");
	ABILITY_NEED(sysconf(_SC_NPROCESSORS_CONF) < CPU_SETSIZE, "1024 processors");
	open_is_refused("1023", "service_cpus: thread dat-");
	assert_int_equal(read_tasks(tasks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ia_open__policy_of_the_opener__threads_one_step_above,
					  unset_settings),
		cmocka_unit_test_teardown(fifo_thread__polls_on_one_processor__messages_arrive,
					  unset_settings),
		cmocka_unit_test_teardown(fifo_thread__polls_over_tcp__messages_arrive,
					  unset_settings),
		cmocka_unit_test_teardown(
			service_cpus__one_processor__the_service_threads_are_there, unset_settings),
		cmocka_unit_test_teardown(service_cpus__bad_list__open_fails_and_the_log_says_why,
					  unset_settings),
	};

	log_capture_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
