// SPDX-License-Identifier: BSD-2-Clause
/*
 * What strangers make the process hold: hundreds call a service point, in each way in which that
 * can go against them, and never close. They get half of the descriptors at most, the program can
 * open files, and a real peer connects.
 */
#include "hostile.h"

#include <sys/resource.h>

#include "ability.h"
#include "descriptors.h"

#define STRANGERS 400
#define LIMIT 256u	   /* descriptors of this process */
#define SILENT_MAX 256u	   /* callers of an adapter that have sent nothing */
#define SILENT_LIMIT 2048u /* descriptors, more than those callers may hold */
#define SILENT_US 150000u  /* then they give way */
#define SLACK 16u	   /* a connection of two real peers, and what is open for a moment */

enum talk {
	SILENT,	  /* says nothing */
	NONSENSE, /* says something else than a request */
	REJECTED, /* makes a request, which the consumer rejects, and waits for that */
	WAITING,  /* makes a request, which the consumer answers late */
	BROKEN,	  /* makes a request, which the consumer accepts, and violates the protocol */
};

static struct scene {
	struct conn_fixture *f;
	struct dt_listener at; /* with room for all requests */
	struct dt_peer strangers;
	struct sockaddr_in address;
	enum talk talk;
	struct rlimit old;
	unsigned before; /* descriptors */
	DAT_CR_HANDLE cr[STRANGERS];
	unsigned count; /* requests that are not answered */
} scene;

/* --- strangers --- */

static int dial(const struct scene *s)
{
	struct sockaddr_in address = s->address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_port = htons((uint16_t)s->at.qual);
	assert_int_not_equal(fd, -1);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void ask(int fd)
{
	static const char frame[20] = "MPA ID Req Frame\0\1"; /* revision 1, no private data */

	send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
}

static void await_answer(int fd)
{
	struct pollfd input = {.fd = fd, .events = POLLIN};
	char bytes[512];

	assert_int_equal(poll(&input, 1, DT_WAIT_US / 1000), 1);
	assert_true(recv(fd, bytes, sizeof(bytes), 0) > 0);
}

static void talk(const struct scene *s, int fd)
{
	char nonsense[64];

	memset(nonsense, 0xff, sizeof(nonsense));
	if (s->talk >= REJECTED)
		ask(fd);
	if (s->talk == REJECTED || s->talk == BROKEN)
		await_answer(fd);
	if (s->talk == NONSENSE || s->talk == BROKEN)
		send(fd, nonsense, sizeof(nonsense), MSG_NOSIGNAL);
}

/* Waits for the limit; tells when all have called, and then when all have their answers. */
static void be_strangers(struct dt_peer *peer, void *arg)
{
	const struct scene *s = arg;
	int fds[STRANGERS];

	dt_peer_sync(peer);
	for (unsigned i = 0; i < STRANGERS; i++) {
		fds[i] = dial(s);
		talk(s, fds[i]);
	}
	dt_peer_sync(peer);
	for (unsigned i = 0; i < STRANGERS && s->talk == WAITING; i++)
		await_answer(fds[i]);
	dt_peer_sync(peer);
	for (;;)
		pause();
}

/* --- this process --- */

/* The program can open a file, and strangers hold half of its descriptors at most. */
static void check_descriptors(const struct scene *s)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_not_equal(fd, -1);
	close(fd);
	assert_in_range(count_descriptors(), 0, s->before + LIMIT / 2 + SLACK);
}

/* Accepts a request of a stranger that then breaks the connection. */
static void be_broken(struct conn_fixture *f, DAT_CR_HANDLE cr)
{
	dt_ok(dat_cr_accept(cr, f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_ok(dat_ep_reset(f->b.ep));
}

/* Takes the next request, if there is one. */
static void take_request(struct scene *s)
{
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	if (dat_evd_dequeue(s->at.evd, &event) != DAT_SUCCESS)
		return;
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	if (s->talk == BROKEN)
		be_broken(s->f, cr);
	else
		s->cr[s->count++] = cr;
}

static void reject_all(struct scene *s)
{
	while (s->count)
		dt_ok(dat_cr_reject(s->cr[--s->count]));
}

/* Takes requests until the strangers tell something. */
static void serve(struct scene *s, bool is_answering)
{
	struct pollfd message = {.fd = s->strangers.fd, .events = POLLIN};

	while (poll(&message, 1, 0) == 0) {
		take_request(s);
		if (is_answering)
			reject_all(s);
		check_descriptors(s);
	}
	dt_peer_sync(&s->strangers);
}

static void check_real_ones_connect(struct scene *s)
{
	struct conn_fixture *f = s->f;

	dt_connect(&f->ia, f->a.ep, s->at.qual);
	dt_ok(dat_cr_accept(dt_request(&s->at), f->b.ep, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_transfer(f, &f->a, &f->b);
	check_descriptors(s);
}

static uint64_t used_us(void)
{
	struct rusage used;

	assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Callers that wait do not keep the process busy. */
static void check_idle(void)
{
	const uint64_t used = used_us();

	assert_int_equal(poll(NULL, 0, 400), 0);
	assert_true(used_us() - used < 100000);
}

/* As many requests are shown as there is room for, and the others when these are answered. */
static void answer_late(struct scene *s)
{
	const unsigned shown = LIMIT / 2;
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	while (s->count < shown && dt_now_us() < end) {
		take_request(s);
		check_descriptors(s);
	}
	assert_int_equal(s->count, shown);
	check_idle();
	dt_no_event(s->at.evd);
	check_descriptors(s);
	serve(s, true);
}

static void be_called(struct scene *s, enum talk way)
{
	struct rlimit low = s->old;

	s->talk = way;
	dt_peer_start(&s->strangers, be_strangers, s);
	low.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	s->before = count_descriptors();
	dt_peer_sync(&s->strangers);
	serve(s, way != WAITING);
	if (way == WAITING)
		answer_late(s);
	else
		dt_peer_sync(&s->strangers);
	check_real_ones_connect(s);
	dt_peer_kill(&s->strangers);
}

static bool are_all_taken(void *arg)
{
	const struct scene *s = arg;

	return count_descriptors() == s->before + 2 * SILENT_MAX;
}

/* The first has ended, and no other one. */
static void check_only_first_gave_way(const int fds[SILENT_MAX])
{
	struct pollfd end = {.fd = fds[0], .events = POLLIN};

	assert_int_equal(poll(&end, 1, DT_WAIT_US / 1000), 1);
	for (unsigned i = 1; i < SILENT_MAX; i++) {
		end.fd = fds[i];
		assert_int_equal(poll(&end, 1, 0), 0);
	}
}

/* As many as may be silent are; one more calls. */
static void be_called_by_one_more(struct scene *s)
{
	struct rlimit high = s->old;
	int fds[SILENT_MAX];

	ABILITY_NEED(high.rlim_max >= SILENT_LIMIT, "few descriptors");
	high.rlim_cur = SILENT_LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &high), 0);
	s->before = count_descriptors();
	for (unsigned i = 0; i < SILENT_MAX; i++)
		fds[i] = dial(s);
	dt_until(are_all_taken, s);
	usleep(SILENT_US);
	dt_connect(&s->f->ia, s->f->a.ep, s->at.qual);
	dt_ok(dat_cr_reject(dt_request(&s->at)));
	dt_expect_conn(s->f->a.conn, s->f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	check_only_first_gave_way(fds);
	for (unsigned i = 0; i < SILENT_MAX; i++)
		close(fds[i]);
}

static int open_scene(void **state)
{
	struct scene *s = &scene;

	memset(s, 0, sizeof(*s));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &s->old), 0);
	setenv("DAT_TRANSPORT", "tcp", 1);
	assert_int_equal(conn_setup(state), 0);
	s->f = *state;
	dt_unlisten(&s->f->listener);
	s->address = *own_address(s->f);
	s->at.evd = dt_evd_create(&s->f->ia, 2 * STRANGERS, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(s->f->ia.ia, &s->at.qual, s->at.evd, DAT_PSP_CONSUMER_FLAG,
				 &s->at.psp));
	return 0;
}

static int close_scene(void **state)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &scene.old), 0);
	unsetenv("DAT_TRANSPORT");
	return conn_teardown(state);
}

/* --- tests --- */

/* IWCM-70 CONN-GEN-09 */
static void listener__hundreds_say_nothing__half_of_the_descriptors(void **state)
{
	(void)state;
	be_called(&scene, SILENT);
}

/* IWCM-70 CONN-GEN-09 */
static void listener__hundreds_talk_nonsense__half_of_the_descriptors(void **state)
{
	(void)state;
	be_called(&scene, NONSENSE);
}

/* IWCM-70 */
static void listener__hundreds_are_rejected__half_of_the_descriptors(void **state)
{
	(void)state;
	be_called(&scene, REJECTED);
}

/* IWCM-70 IWCM-71 */
static void listener__hundreds_wait_for_the_consumer__half_of_the_descriptors(void **state)
{
	(void)state;
	be_called(&scene, WAITING);
}

/* IWCM-70 */
static void listener__hundreds_break_connections__half_of_the_descriptors(void **state)
{
	(void)state;
	be_called(&scene, BROKEN);
}

/* IWCM-70: for each that comes, one gives way */
static void listener__one_silent_caller_too_many__the_first_ends(void **state)
{
	(void)state;
	be_called_by_one_more(&scene);
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
		one(listener__hundreds_say_nothing__half_of_the_descriptors),
		one(listener__hundreds_talk_nonsense__half_of_the_descriptors),
		one(listener__hundreds_are_rejected__half_of_the_descriptors),
		one(listener__hundreds_wait_for_the_consumer__half_of_the_descriptors),
		one(listener__hundreds_break_connections__half_of_the_descriptors),
		one(listener__one_silent_caller_too_many__the_first_ends),
	};

	return cmocka_run_group_tests_name("callers", tests, NULL, NULL);
}
