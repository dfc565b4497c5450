// SPDX-License-Identifier: BSD-2-Clause
/*
 * A hostile peer passes descriptors whose last close blocks: local sockets in whose queues TCP
 * sockets linger. No call, no fork and no other connection waits for them. The kernel may refuse
 * such packets; then nothing is there that could block.
 */
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "hostile.h"
#include "lingering.h"
#include "old_kernel.h"

#define LINGER_S 60
#define AT_ONCE_US 25000000u
#define MANY 24

#define SLOW_MAX 8 /* in one packet */

static struct lingering slow[2 * MANY];
static size_t slow_count;
static struct rlimit limit; /* of descriptors */

/* Is each thread of the process stopped? */
static bool is_stopped(pid_t pid)
{
	char path[64], text[512], state = 'T';
	const struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && state == 'T' && (entry = readdir(tasks)) != NULL) {
		FILE *file;

		snprintf(text, sizeof(text), "%s/%s/stat", path, entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(text, "re");
		if (!file)
			continue;
		/* the name of a program of ours has no spaces */
		if (fscanf(file, "%*d %*s %c", &state) != 1)
			state = '?';
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return state == 'T';
}

/*
 * Calls the listener itself if the peer has no socket. The other side is stopped meanwhile: if it
 * took the packet at once, the last copies would be those of this process.
 */
static void send_in_child(struct conn_fixture *f, struct hostile *h, const struct lingering *mine,
			  size_t count, int ready)
{
	const pid_t parent = getppid();
	int fds[SLOW_MAX];
	bool is_sent;
	char byte;

	for (size_t i = 0; i < slow_count; i++)
		close(slow[i].other);
	for (size_t i = 0; i < count; i++)
		fds[i] = mine[i].fd;
	if (read(ready, &byte, 1) != 1 || setrlimit(RLIMIT_NOFILE, &limit) || kill(parent, SIGSTOP))
		_exit(1);
	while (!is_stopped(parent))
		sched_yield();
	if (h->fd < 0)
		hostile_dial(h, own_address(f), f->listener.qual);
	is_sent = hostile_send(h, "nonsense", 8, fds, count);
	/* if the kernel has refused them, the end closes them: such sockets do not linger */
	for (size_t i = 0; i < count && is_sent; i++)
		close(fds[i]);
	kill(parent, SIGCONT);
	_exit(0);
}

/* Sends such descriptors; the last copy of each is the one in the packet. */
static void send_slow(struct conn_fixture *f, struct hostile *h, size_t count)
{
	const struct rlimit none = {.rlim_max = limit.rlim_max};
	struct lingering *mine = &slow[slow_count];
	int status, ready[2];
	pid_t child;

	assert_true(count <= SLOW_MAX && slow_count + count <= COUNT_OF(slow));
	for (size_t i = 0; i < count; i++)
		lingering_open_nested(&mine[i], LINGER_S);
	slow_count += count;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	if (h->fd < 0) /* so that the call stays in the backlog */
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child)
		send_in_child(f, h, mine, count, ready[0]);
	for (size_t i = 0; i < count; i++)
		close(mine[i].fd);
	assert_int_equal(write(ready[1], "", 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Ends the closes that block. */
static void release_slow(void)
{
	for (size_t i = 0; i < slow_count; i++)
		lingering_release(&slow[i]);
	slow_count = 0;
}

/* also after a test that has failed */
static int slow_teardown(void **state)
{
	release_slow();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return conn_teardown(state);
}

static void check_fork(void)
{
	const pid_t child = fork();
	int status;

	assert_int_not_equal(child, -1);
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
}

static void check_took(uint64_t start)
{
	assert_true(dt_now_us() - start < AT_ONCE_US);
}

/* CONN-GEN-09: few and many in one packet; the second packet may stay unread */
static void listener__packets_with_slow_descriptors__others_do_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	uint64_t start;

	for (size_t count = 1; count <= 7; count += 6) {
		struct hostile h;

		hostile_dial(&h, own_address(f), f->listener.qual);
		send_slow(f, &h, count);
		send_slow(f, &h, 1);
		close(h.fd);
		start = dt_now_us();
		check_fork();
		check_others_work(f);
		check_took(start);
	}
	release_slow();
}

/* CR-REJECT-01: the descriptors are unread when the request is rejected */
static void cr_reject__slow_descriptors_unread__does_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;
	DAT_CR_HANDLE cr;
	uint64_t start;

	hostile_ask(&h, own_address(f), f->listener.qual);
	cr = dt_request(&f->listener);
	send_slow(f, &h, 2);
	start = dt_now_us();
	dt_ok(dat_cr_reject(cr));
	check_fork();
	check_others_work(f);
	check_took(start);
	hostile_close(&h);
	release_slow();
}

/* PSP-FREE-06: callers that were not accepted yet; the qualifier is free again at once */
static void psp_free__slow_descriptors_in_the_backlog__does_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h[MANY];
	DAT_PSP_HANDLE psp;
	uint64_t start;

	for (size_t i = 0; i < MANY; i++) {
		hostile_dial(&h[i], own_address(f), f->listener.qual);
		send_slow(f, &h[i], 2);
	}
	for (size_t i = 0; i < MANY; i++)
		close(h[i].fd);
	start = dt_now_us();
	dt_ok(dat_psp_free(f->listener.psp));
	dt_ok(dat_psp_create(f->ia.ia, f->listener.qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
			     &psp));
	f->listener.psp = psp;
	check_fork();
	check_others_work(f);
	check_took(start);
	release_slow();
}

static bool can_listen(void *arg)
{
	struct conn_fixture *f = arg;

	return dat_psp_create(f->ia.ia, f->listener.qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
			      &f->listener.psp) == DAT_SUCCESS;
}

/* PSP-FREE-06: ... and cannot be taken out of it */
static void psp_free__no_descriptor_to_empty_the_backlog__does_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h = {.fd = -1};
	uint64_t start;

	send_slow(f, &h, 2);
	start = dt_now_us();
	dt_ok(dat_psp_free(f->listener.psp));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_fork();
	check_took(start);
	release_slow();
	dt_until(can_listen, f);
	check_others_work(f);
}

/* EP-FREE-29: of an accepted peer, read and unread */
static void ep_free__slow_descriptors__does_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;
	uint64_t start;

	hostile_connect(&h, f, &f->a);
	start = dt_now_us();
	send_slow(f, &h, 3);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	send_slow(f, &h, 1);
	dt_ep_free(&f->a);
	check_fork();
	dt_ep_create(&f->ia, f->ia.pz, NULL, &f->a);
	check_others_work(f);
	check_took(start);
	hostile_close(&h);
	release_slow();
}

/* IA-CLOSE-13 */
static void ia_close__slow_descriptors__does_not_wait(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h[3];
	uint64_t start;

	hostile_ask(&h[0], own_address(f), f->listener.qual);
	(void)dt_request(&f->listener);
	send_slow(f, &h[0], 2);
	for (size_t i = 1; i < COUNT_OF(h); i++) {
		hostile_dial(&h[i], own_address(f), f->listener.qual);
		send_slow(f, &h[i], 2);
		close(h[i].fd);
	}
	start = dt_now_us();
	assert_int_equal(conn_teardown(state), 0);
	check_fork();
	check_took(start);
	hostile_close(&h[0]);
	release_slow();
	assert_int_equal(conn_setup(state), 0);
}

#define slow_test(name) cmocka_unit_test_setup_teardown(name, conn_setup, slow_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		slow_test(listener__packets_with_slow_descriptors__others_do_not_wait),
		slow_test(cr_reject__slow_descriptors_unread__does_not_wait),
		slow_test(psp_free__slow_descriptors_in_the_backlog__does_not_wait),
		slow_test(psp_free__no_descriptor_to_empty_the_backlog__does_not_wait),
		slow_test(ep_free__slow_descriptors__does_not_wait),
		slow_test(ia_close__slow_descriptors__does_not_wait),
	};

	int failed;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	failed = cmocka_run_group_tests_name("hostile close", tests, NULL, NULL);
	old_kernel_make();
	return failed + cmocka_run_group_tests_name("hostile close, old kernel", tests, NULL, NULL);
}
