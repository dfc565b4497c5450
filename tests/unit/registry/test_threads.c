// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opens and closes in parallel threads and around forks, and the diagnostics of the registry.
 */
#include "mock_use.h"

#include <pthread.h>

struct mock mock;

static DAT_IA_HANDLE closing_ia;

/* --- threads and forks --- */

#define THREADS 8

static pthread_barrier_t barrier;
static DAT_IA_HANDLE thread_ias[THREADS];
static DAT_RETURN thread_results[THREADS];

static void threads_run(void *(*body)(void *index))
{
	pthread_t threads[THREADS];
	uintptr_t i;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *thread_open(void *index)
{
	uintptr_t i = (uintptr_t)index;

	pthread_barrier_wait(&barrier);
	thread_results[i] = open_simply("mock", &thread_ias[i]);
	return NULL;
}

static void parallel_first_open(void)
{
	int i, j;

	single_conf();
	threads_run(thread_open);
	for (i = 0; i < THREADS; i++) {
		must(thread_results[i] == DAT_SUCCESS);
		for (j = 0; j < i; j++)
			must(thread_ias[i] != thread_ias[j]);
	}
	must(mock.inits == 1);
}

/* PROV-INIT-14 IA-OPEN-44 CONF-40 */
static void ia_open__parallel_first_opens__one_init(void **state)
{
	(void)state;
	child_run(parallel_first_open);
}

static DAT_CLOSE_FLAGS close_flags;

static void *thread_close(void *index)
{
	pthread_barrier_wait(&barrier);
	thread_results[(uintptr_t)index] = dat_ia_close(closing_ia, close_flags);
	return NULL;
}

static void parallel_close_with(DAT_CLOSE_FLAGS flags)
{
	int successes = 0, i;

	close_flags = flags;
	mock.notes[0] = '\0';
	must(open_simply("mock", &closing_ia) == DAT_SUCCESS);
	threads_run(thread_close);
	for (i = 0; i < THREADS; i++) {
		successes += thread_results[i] == DAT_SUCCESS;
		must(thread_results[i] == DAT_SUCCESS ||
		     DAT_GET_TYPE(thread_results[i]) == DAT_INVALID_HANDLE);
	}
	must(successes == 1);
	must(strcmp(mock.notes, flags == DAT_CLOSE_GRACEFUL_FLAG ? "LIOcFU" : "LIOCFU") == 0);
}

static void parallel_close(void)
{
	int i;

	single_conf();
	for (i = 0; i < 50; i++) {
		parallel_close_with(DAT_CLOSE_GRACEFUL_FLAG);
		parallel_close_with(DAT_CLOSE_ABRUPT_FLAG);
	}
}

/* GEN-26: exactly one of several closes reaches the provider. */
static void ia_close__parallel__one_acts(void **state)
{
	(void)state;
	child_run(parallel_close);
}

static void *thread_open_close(void *index)
{
	DAT_IA_HANDLE ia;
	int i;

	(void)index;
	for (i = 0; i < 200; i++) {
		must(open_simply("mock", &ia) == DAT_SUCCESS);
		close_must(ia);
	}
	return NULL;
}

static void parallel_open_close(void)
{
	single_conf();
	threads_run(thread_open_close);
	must(mock.inits == mock.finis);
	must(!is_loaded("MOCK_FOREIGN"));
}

/* IA-OPEN-43 IA-OPEN-44 PROV-FINI-05 PROV-FINI-10: first opens race with last closes. */
static void ia_open__parallel_with_closes__no_residue(void **state)
{
	(void)state;
	child_run(parallel_open_close);
}

/* --- different names --- */

#define ROUNDS 100

DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *ia_handle_p);

static const struct {
	const char *name, *library;
} adapters[] = {{"a", "MOCK_FOREIGN"}, {"b", "MOCK_FOREIGN"}, {"c", "MOCK_SECOND"}};

static void adapters_conf(void)
{
	char text[3 * 600];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(adapters) / sizeof(adapters[0]); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s " U "2 nonthreadsafe default %s mock.1 \"\" \"\"\n",
					adapters[i].name, library_get(adapters[i].library));
	must(len < sizeof(text));
	conf_set(text);
}

/* The instance is of that library: its table is there. */
static void library_must(DAT_IA_HANDLE ia, const char *library)
{
	DAT_IA_HANDLE handle;
	Dl_info info;

	must(dats_get_ia_handle((unsigned long)(uintptr_t)ia, &handle) == DAT_SUCCESS);
	must(dladdr(((const struct mock_object *)handle)->provider, &info) != 0);
	must(strcmp(info.dli_fname, library_get(library)) == 0);
}

static void *thread_open_names(void *index)
{
	uintptr_t i = (uintptr_t)index;

	pthread_barrier_wait(&barrier);
	for (int round = 0; round < ROUNDS; round++) {
		size_t which = (i + (size_t)round) % (sizeof(adapters) / sizeof(adapters[0]));
		DAT_IA_HANDLE ia, again;

		must(open_simply(adapters[which].name, &ia) == DAT_SUCCESS);
		must(open_simply(adapters[which].name, &again) == DAT_SUCCESS);
		must(ia != again);
		library_must(ia, adapters[which].library);
		library_must(again, adapters[which].library);
		close_must(ia);
		library_must(again, adapters[which].library);
		close_must(again);
	}
	return NULL;
}

static void parallel_names(void)
{
	adapters_conf();
	threads_run(thread_open_names);
	must(mock.inits == mock.finis);
	must(!is_loaded("MOCK_FOREIGN") && !is_loaded("MOCK_SECOND"));
}

/* IA-OPEN-44: different names, two of them of one library, and each name by several threads */
static void ia_open__parallel_names__each_of_its_library(void **state)
{
	(void)state;
	child_run(parallel_names);
}

static void forked(void)
{
	DAT_IA_HANDLE ia, other;
	int status;
	pid_t pid;

	single_conf();
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		must_fail(dat_pz_create(ia, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
		must_fail(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
			  DAT_INVALID_HANDLE_IA);
		must(open_simply("mock", &other) == DAT_SUCCESS);
		must(other != ia);
		must(dat_pz_create(other, NULL) == DAT_SUCCESS);
		/* The parent's instance is not counted here. */
		close_must(other);
		must(mock.finis == 1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	must(dat_pz_create(ia, NULL) == DAT_SUCCESS);
	close_must(ia);
}

/* GEN-35: For adapters' handles. */
static void fork__instance_open__child_is_refused_it_and_opens_another(void **state)
{
	(void)state;
	child_run(forked);
}

static void fork_in_init(void)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		/* Only this thread is left; it still owns the serializer. */
		DAT_IA_HANDLE ia;

		must_fail(open_simply("other", &ia), DAT_PROVIDER_NOT_FOUND,
			  DAT_NAME_NOT_REGISTERED);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pthread_barrier_t init_reached, fork_done;

static void wait_in_init(void)
{
	pthread_barrier_wait(&init_reached);
	pthread_barrier_wait(&fork_done);
}

static void *open_slowly(void *unused)
{
	DAT_IA_HANDLE ia;

	(void)unused;
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	return NULL;
}

/* libdat calls it as soon as it has loaded a library. */
static void (*in_dlinfo)(void);

__attribute__((visibility("default"))) int dlinfo(void *handle, int request, void *info)
{
	union {
		void *address;
		int (*call)(void *handle, int request, void *info);
	} real = {.address = dlsym(RTLD_NEXT, "dlinfo")};

	if (in_dlinfo)
		in_dlinfo();
	return real.call(handle, request, info);
}

static void wait_in_dlinfo(void)
{
	in_dlinfo = NULL;
	wait_in_init();
}

static void wait_before_fork(void)
{
	pthread_barrier_init(&init_reached, NULL, 2);
	pthread_barrier_init(&fork_done, NULL, 2);
}

static void fork_after_dlopen(void)
{
	DAT_IA_HANDLE ia;
	pthread_t thread;
	int status;
	pid_t pid;

	single_conf();
	wait_before_fork();
	in_dlinfo = wait_in_dlinfo;
	must(pthread_create(&thread, NULL, open_slowly, NULL) == 0);
	pthread_barrier_wait(&init_reached);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		must(open_simply("mock", &ia) == DAT_SUCCESS);
		must(strcmp(mock.instance_data, "data") == 0);
		close_must(ia);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_barrier_wait(&fork_done);
	pthread_join(thread, NULL);
}

/* GEN-35: The child finds no entry whose library is loaded, but not its functions. */
static void fork__another_thread_has_just_loaded_the_library__child_opens(void **state)
{
	(void)state;
	child_run(fork_after_dlopen);
}

static void fork_while_loading(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	single_conf();
	wait_before_fork();
	mock.in_init = wait_in_init;
	must(pthread_create(&thread, NULL, open_slowly, NULL) == 0);
	pthread_barrier_wait(&init_reached);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		DAT_IA_HANDLE ia;

		/* The thread that initialised the library does not exist here. */
		mock.in_init = NULL;
		must(open_simply("mock", &ia) == DAT_SUCCESS);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_barrier_wait(&fork_done);
	pthread_join(thread, NULL);
	mock.in_init = fork_in_init;
	must_fail(open_simply("other", &(DAT_IA_HANDLE){0}), DAT_PROVIDER_NOT_FOUND,
		  DAT_NAME_NOT_REGISTERED);
}

/* GEN-35: A child can open instances while threads of the parent hold locks. */
static void fork__another_thread_in_init__child_opens(void **state)
{
	(void)state;
	child_run(fork_while_loading);
}

static void fork_inside_init(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	mock.in_init = fork_in_init;
	must(open_simply("mock", &ia) == DAT_SUCCESS);
}

static void fork__from_inside_init__both_continue(void **state)
{
	(void)state;
	child_run(fork_inside_init);
}

static void silent(void)
{
	DAT_IA_HANDLE ia;
	char text[16];
	int pipes[2];

	must(pipe(pipes) == 0);
	must(dup2(pipes[1], STDOUT_FILENO) >= 0 && dup2(pipes[1], STDERR_FILENO) >= 0);
	close(pipes[1]);
	foreign_conf("a bad line\n" LINE(
		"mock", U "2",
		"nonthreadsafe") "gone " U "2 nonthreadsafe default /nonexistent.so v \"\" \"\"\n");
	if (open_simply("mock", &ia) != DAT_SUCCESS || open_simply("gone", &ia) == DAT_SUCCESS)
		_exit(2);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	_exit(read(pipes[0], text, sizeof(text)) == 0 ? 0 : 3);
}

/* GEN-30: nothing is written unless the environment enables it. */
static void registry__no_debug_variable__silent(void **state)
{
	(void)state;
	child_run(silent);
}

static void talking(void)
{
	static char text[4096];
	DAT_IA_HANDLE ia;
	ssize_t len;
	int pipes[2];

	must(pipe(pipes) == 0);
	must(dup2(pipes[1], STDERR_FILENO) >= 0);
	setenv("DAT_DBG_TYPE", "0x2", 1);
	foreign_conf("# comment\na bad line\n" LINE("mock", U "2", "nonthreadsafe"));
	if (open_simply("mock", &ia) != DAT_SUCCESS)
		_exit(2);
	len = read(pipes[0], text, sizeof(text) - 1);
	/* File, line and reason. */
	_exit(len > 0 && strstr(text, "/proc/self/fd/") && strstr(text, ":2: ") &&
			      strstr(text, "fewer than eight fields")
		      ? 0
		      : 3);
}

/* GEN-30: a skipped line is reported with file, line and reason if enabled. */
static void registry__debug_variable__reports_skipped_lines(void **state)
{
	(void)state;
	child_run(talking);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__parallel_first_opens__one_init),
		cmocka_unit_test(ia_close__parallel__one_acts),
		cmocka_unit_test(ia_open__parallel_with_closes__no_residue),
		cmocka_unit_test(ia_open__parallel_names__each_of_its_library),
		cmocka_unit_test(fork__instance_open__child_is_refused_it_and_opens_another),
		cmocka_unit_test(fork__another_thread_in_init__child_opens),
		cmocka_unit_test(fork__another_thread_has_just_loaded_the_library__child_opens),
		cmocka_unit_test(fork__from_inside_init__both_continue),
		cmocka_unit_test(registry__no_debug_variable__silent),
		cmocka_unit_test(registry__debug_variable__reports_skipped_lines),
	};

	return cmocka_run_group_tests_name("registry threads", tests, NULL, NULL);
}
