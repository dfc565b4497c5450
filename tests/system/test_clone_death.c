// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process is killed while a child of it lives that was made by a raw clone: the child has copies
 * of all sockets, so no socket ends. The survivor is notified all the same, in the same way.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "peer_death.h"

#include "old_kernel.h"

#define IN_TIME_US 5000000u
#define STRANGER 54321u
#define FEW 256 /* descriptors */

/* --- the victim and its child --- */

struct scene {
	struct conn_fixture *f;
	struct dt_peer victim;
	pid_t child;
};

static void scene_open(struct scene *scene, bool is_stranger)
{
	void *f;

	memset(scene, 0, sizeof(*scene));
	if (is_stranger)
		remote_start_as(&scene->victim, STRANGER);
	else
		remote_start(&scene->victim);
	conn_setup(&f);
	scene->f = f;
}

static void victim_clones(struct scene *scene)
{
	scene->child = (pid_t)remote_do(&scene->victim, REMOTE_FORK, 0, 1);
}

static void victim_dies(struct scene *scene)
{
	dt_peer_kill(&scene->victim);
	assert_int_equal(kill(scene->child, 0), 0);
}

static void scene_close(struct scene *scene)
{
	void *f = scene->f;

	assert_int_equal(kill(scene->child, SIGKILL), 0);
	conn_teardown(&f);
}

/* The survivor's endpoint b gets that event in time. */
static void expect_end(struct scene *scene, DAT_EVENT_NUMBER number, uint64_t since)
{
	dt_expect_conn(scene->f->b.conn, scene->f->b.ep, number);
	assert_true(dt_now_us() - since < IN_TIME_US);
	assert_int_equal(dt_ep_state(scene->f->b.ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(scene->f->b.conn);
}

static void link_passive_to(struct scene *scene)
{
	struct remote_fixture r = {.f = scene->f, .peer = scene->victim};

	remote_link_passive(&r);
}

static void link_active_to(struct scene *scene)
{
	struct remote_fixture r = {.f = scene->f, .peer = scene->victim};

	remote_link_active(&r);
}

/* --- steps --- */

static void connected_passive(struct scene *scene)
{
	const uint64_t since = dt_now_us();

	link_passive_to(scene);
	victim_clones(scene);
	victim_dies(scene);
	expect_end(scene, DAT_CONNECTION_EVENT_BROKEN, since);
}

static void connected_active(struct scene *scene)
{
	const uint64_t since = dt_now_us();

	link_active_to(scene);
	victim_clones(scene);
	victim_dies(scene);
	expect_end(scene, DAT_CONNECTION_EVENT_BROKEN, since);
}

/* What it has sent arrives first. */
static void had_sent(struct scene *scene)
{
	struct conn_fixture *f = scene->f;
	const uint64_t since = dt_now_us();

	conn_post_recv(f->b.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	link_passive_to(scene);
	victim_clones(scene);
	remote_do(&scene->victim, REMOTE_POST_SEND, 1, 0);
	assert_int_equal(remote_do(&scene->victim, REMOTE_SENT, 0, 0), DAT_DTO_SUCCESS);
	victim_dies(scene);
	dt_expect_dto(f->b.recv, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	expect_end(scene, DAT_CONNECTION_EVENT_BROKEN, since);
}

static void request_waits(struct scene *scene)
{
	struct conn_fixture *f = scene->f;
	DAT_CR_HANDLE cr;
	uint64_t since;

	remote_connect(&scene->victim, f->listener.qual);
	cr = dt_request(&f->listener);
	victim_clones(scene);
	victim_dies(scene);
	since = dt_now_us();
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	expect_end(scene, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, since);
}

static void completion_pending(struct scene *scene)
{
	struct conn_fixture *f = scene->f;
	DAT_CR_HANDLE cr;
	uint64_t since;

	victim_clones(scene);
	remote_connect(&scene->victim, f->listener.qual);
	cr = dt_request(&f->listener);
	kill(scene->child, SIGKILL); /* that one was made before there was a socket */
	victim_clones(scene);
	dt_peer_stop(&scene->victim);
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	assert_int_equal(dt_ep_state(f->b.ep), DAT_EP_STATE_COMPLETION_PENDING);
	since = dt_now_us();
	victim_dies(scene);
	expect_end(scene, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, since);
}

static void asked(struct scene *scene)
{
	const DAT_CONN_QUAL qual = remote_do(&scene->victim, REMOTE_LISTEN, 0, 0);
	uint64_t since;

	dt_connect(&scene->f->ia, scene->f->b.ep, qual);
	remote_do(&scene->victim, REMOTE_REQUEST, 0, 0);
	victim_clones(scene);
	since = dt_now_us();
	victim_dies(scene);
	expect_end(scene, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, since);
}

/* The child holds the name of the service point. */
static void asked_after_death(struct scene *scene)
{
	const DAT_CONN_QUAL qual = remote_do(&scene->victim, REMOTE_LISTEN, 0, 0);
	const uint64_t since = dt_now_us();

	victim_clones(scene);
	victim_dies(scene);
	dt_connect(&scene->f->ia, scene->f->b.ep, qual);
	expect_end(scene, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, since);
}

static void run_steps(bool is_stranger)
{
	static const struct {
		const char *name;
		void (*run)(struct scene *scene);
	} steps[] = {
		{"connected, passive", connected_passive},
		{"connected, active", connected_active},
		{"had sent", had_sent},
		{"request waits", request_waits},
		{"completion pending", completion_pending},
		{"asked", asked},
		{"asked after death", asked_after_death},
	};

	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		struct scene scene;

		print_message("  %s\n", steps[i].name);
		scene_open(&scene, is_stranger);
		steps[i].run(&scene);
		scene_close(&scene);
	}
}

/* EP-STATE-44 CONN-EVT-39 EP-CONNECT-22 CR-ACCEPT-20 */
static void peer_dies__its_clone_survives__survivor_notified(void **state)
{
	(void)state;
	run_steps(false);
}

/* EP-STATE-44 CONN-EVT-39 EP-CONNECT-22 CR-ACCEPT-20 */
static void peer_of_another_user_dies__its_clone_survives__survivor_notified(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	run_steps(true);
}

/* --- descriptors --- */

static unsigned process_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++) {
		char name[32], file[64] = "";

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		if (readlink(name, file, sizeof(file) - 1) > 0 && strstr(file, "pidfd"))
			count++;
	}
	return count;
}

static bool is_unwatched(void *arg)
{
	(void)arg;
	return process_descriptors() == 0;
}

/* EP-STATE-44: a process takes one descriptor, however many connections it has */
static void connect__many_to_one_process__one_descriptor(void **state)
{
	struct scene scene;
	struct dt_ep more;
	struct dt_ep *eps[] = {NULL, &more};

	(void)state;
	scene_open(&scene, false);
	eps[0] = &scene.f->b;
	dt_ep_create(&scene.f->ia, scene.f->ia.pz, NULL, &more);
	for (unsigned i = 0; i < COUNT_OF(eps); i++) {
		dt_connect(&scene.f->ia, eps[i]->ep, remote_do(&scene.victim, REMOTE_LISTEN, 0, 0));
		remote_do(&scene.victim, REMOTE_REQUEST, 0, 0);
	}
	assert_int_equal(process_descriptors(), 1);
	victim_clones(&scene);
	victim_dies(&scene);
	for (unsigned i = 0; i < COUNT_OF(eps); i++)
		dt_expect_conn(eps[i]->conn, eps[i]->ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_until(is_unwatched, NULL);
	dt_ep_free(&more);
	scene_close(&scene);
}

static int taken[FEW];
static unsigned taken_count;

/* Takes all descriptors but one. */
static void take_descriptors(void)
{
	for (taken_count = 0; taken_count < FEW; taken_count++) {
		taken[taken_count] = fcntl(0, F_DUPFD_CLOEXEC, 0);
		if (taken[taken_count] < 0)
			break;
	}
	assert_true(taken_count > 0);
	close(taken[--taken_count]);
}

/* CR-ACCEPT-01: without a descriptor for the process while its request arrives */
static void connect__no_descriptor_left__connected_all_the_same(void **state)
{
	struct scene scene;
	struct rlimit limit, few;
	DAT_CR_HANDLE cr;

	(void)state;
	scene_open(&scene, false);
	victim_clones(&scene);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){.rlim_cur = FEW, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	take_descriptors(); /* the socket of the caller takes the last one */
	remote_connect(&scene.victim, scene.f->listener.qual);
	cr = dt_request(&scene.f->listener);
	assert_int_equal(process_descriptors(), 0);
	while (taken_count)
		close(taken[--taken_count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	dt_ok(dat_cr_accept(cr, scene.f->b.ep, 0, NULL));
	dt_expect_conn(scene.f->b.conn, scene.f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_kill(&scene.victim);
	dt_expect_conn(scene.f->b.conn, scene.f->b.ep, DAT_CONNECTION_EVENT_BROKEN);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_dies__its_clone_survives__survivor_notified),
		cmocka_unit_test(peer_of_another_user_dies__its_clone_survives__survivor_notified),
		cmocka_unit_test(connect__many_to_one_process__one_descriptor),
		cmocka_unit_test(connect__no_descriptor_left__connected_all_the_same),
	};

	int failed = cmocka_run_group_tests_name("clone_death", tests, NULL, NULL);

	old_kernel_names_no_process();
	return failed + cmocka_run_group_tests_name("clone_death, before 6.5", tests, NULL, NULL);
}
