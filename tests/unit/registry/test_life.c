// SPDX-License-Identifier: BSD-2-Clause
/*
 * How long things live: a provider library from its first instance to its last, an instance until
 * exactly one close, and both across threads and forks. Also the diagnostics of the registry.
 */
#include "mock_use.h"

#include <pthread.h>

struct mock mock;

/* ---- initialisation and its end ---- */

static void fini_keeps_registration(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	mock.fini_is_idle = true;
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	close_must(ia);
	must(strcmp(mock.notes, "LIOCFU") == 0);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOCFULIO") == 0);
	close_must(ia);
	must(mock.finis == 2);
}

/* PROV-FINI-05 PROV-FINI-07 */
static void ia_close__fini_forgets_to_unregister__the_registry_does_it(void **state)
{
	(void)state;
	child_run(fini_keeps_registration);
}

static void remove_in_use(void)
{
	DAT_IA_HANDLE first, second;

	single_conf();
	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(dat_registry_remove_provider(mock.provider, &mock.init_info) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_IN_USE));
	must(open_simply("mock", &second) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOO") == 0);
}

/* REG-REMOVE-02 REG-REMOVE-03 */
static void registry_remove__instance_open__in_use(void **state)
{
	(void)state;
	child_run(remove_in_use);
}

static void two_names(void)
{
	DAT_IA_HANDLE first, second;

	foreign_conf(LINE("a", "u1.2", "nonthreadsafe") LINE("b", "u1.2", "nonthreadsafe"));
	must(open_simply("a", &first) == DAT_SUCCESS);
	must(strcmp(mock.init_info.ia_name, "a") == 0);
	must(open_simply("b", &second) == DAT_SUCCESS);
	must(strcmp(mock.init_info.ia_name, "b") == 0);
	must(strcmp(mock.notes, "LIOIO") == 0);
	close_must(first);
	must(strcmp(mock.fini_info.ia_name, "a") == 0);
	must(strcmp(mock.notes, "LIOIOCF") == 0);
	must(dat_pz_create(second, NULL) == DAT_SUCCESS);
	close_must(second);
	must(strcmp(mock.notes, "LIOIOCFCFU") == 0);
}

/* PROV-INIT-13 PROV-FINI-08 IA-OPEN-38 */
static void ia_open__two_names_of_one_library__one_init_each(void **state)
{
	(void)state;
	child_run(two_names);
}

static void second_name(void)
{
	DAT_IA_HANDLE first, second;

	single_conf();
	mock.second_name = "extra";
	must(open_simply("mock", &first) == DAT_SUCCESS);
	must(open_simply("extra", &second) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "extra") == 0);
	close_must(first);
	/* The name that nothing but its library's memory stands for still works. */
	must(dat_pz_create(second, NULL) == DAT_SUCCESS);
	close_must(second);
	must(open_simply("extra", &second) == DAT_SUCCESS);
}

/* REG-ADD-02 PROV-FINI-08 */
static void ia_close__library_registered_another_name__it_still_opens(void **state)
{
	(void)state;
	child_run(second_name);
}

static void init_after_removal(void)
{
	DAT_PROVIDER_INIT_FUNC init;
	DAT_IA_HANDLE ia;
	void *library;

	single_conf();
	library = dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW);
	must(library != NULL);
	*(void **)&init = dlsym(library, DAT_PROVIDER_INIT_FUNC_STR);
	init(&(DAT_PROVIDER_INFO){"mock", 1, 2, DAT_FALSE}, "");
	must(dat_registry_remove_provider(mock.provider, &mock.init_info) == DAT_SUCCESS);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(mock.inits == 2);
}

/* PROV-INIT-05 */
static void ia_open__registration_was_removed__init_again(void **state)
{
	(void)state;
	child_run(init_after_removal);
}

static void init_by_hand(void)
{
	const DAT_PROVIDER_INFO info = {"mine", 1, 2, DAT_TRUE};
	DAT_PROVIDER_INIT_FUNC init;
	DAT_IA_HANDLE ia;
	void *library;

	conf_set("");
	library = dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW);
	must(library != NULL);
	*(void **)&init = dlsym(library, DAT_PROVIDER_INIT_FUNC_STR);
	init(&info, "");
	must(open_as("mine", 1, 2, DAT_TRUE, &ia) == DAT_SUCCESS);
	close_must(ia);
	/* Not the registry's initialisation, so not its to finish. */
	must(strcmp(mock.notes, "LIOC") == 0);
	must(open_as("mine", 1, 2, DAT_TRUE, &ia) == DAT_SUCCESS);
}

/* PROV-INIT-12 IA-OPEN-37 */
static void ia_open__program_initialised_the_library__opens(void **state)
{
	(void)state;
	child_run(init_by_hand);
}

static void library_let_go(void)
{
	const DAT_PROVIDER_INFO info = {"mine", 1, 2, DAT_FALSE};
	DAT_IA_HANDLE ia;
	void *library;

	conf_set("");
	library = dlopen(library_get("MOCK_FOREIGN"), RTLD_NOW);
	must(library != NULL);
	must(dat_registry_add_provider(mock.provider, &info) == DAT_SUCCESS);
	must(open_simply("mine", &ia) == DAT_SUCCESS);
	must(dlclose(library) == 0);
	must(strcmp(mock.notes, "LO") == 0);
	must(dat_pz_create(ia, NULL) == DAT_SUCCESS);
	must(dat_registry_remove_provider(mock.provider, &info) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_IN_USE));
}

/* IA-OPEN-38 */
static void ia_open__program_lets_the_library_go__instance_keeps_it(void **state)
{
	(void)state;
	child_run(library_let_go);
}

static void open_in_init(void)
{
	static bool is_inside;
	DAT_COUNT count;
	DAT_IA_HANDLE ia;

	if (is_inside)
		return;
	is_inside = true;
	/* A provider on top of another one: both may use the registry from here. */
	must(open_simply("b", &ia) == DAT_SUCCESS);
	must_fail(dat_registry_list_providers(0, &count, NULL), DAT_INVALID_PARAMETER);
	must(count == 2);
}

static void nested_init(void)
{
	DAT_IA_HANDLE ia;

	foreign_conf(LINE("a", "u1.2", "nonthreadsafe") LINE("b", "u1.2", "nonthreadsafe"));
	mock.in_init = open_in_init;
	must(open_simply("a", &ia) == DAT_SUCCESS);
}

static void ia_open__from_inside_init__no_deadlock(void **state)
{
	(void)state;
	child_run(nested_init);
}

/* ---- closing ---- */

static void close_bad(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	must_fail(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	must(dat_ia_close(ia, (DAT_CLOSE_FLAGS)2) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	must(strcmp(mock.notes, "LIO") == 0);
	close_must(ia);
	must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) ==
	     (DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA));
}

/* IA-CLOSE-17 IA-CLOSE-18 */
static void ia_close__bad_arguments__refused(void **state)
{
	(void)state;
	child_run(close_bad);
}

static void close_refused(void)
{
	DAT_IA_HANDLE ia;

	single_conf();
	must(open_simply("mock", &ia) == DAT_SUCCESS);
	mock.close_result = DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE;
	must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == mock.close_result);
	must(strcmp(mock.notes, "LIOc") == 0);
	must(dat_pz_create(ia, NULL) == DAT_SUCCESS);
	mock.close_result = DAT_SUCCESS;
	must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOccFU") == 0);
}

/* IA-CLOSE-05 */
static void ia_close__refused_by_the_provider__still_open(void **state)
{
	(void)state;
	child_run(close_refused);
}

static void numbers(void)
{
	DAT_IA_HANDLE stale, ia, keep;
	int i;

	single_conf();
	must(open_simply("mock", &keep) == DAT_SUCCESS);
	must(open_simply("mock", &stale) == DAT_SUCCESS);
	must((uintptr_t)stale < 0x10000);
	close_must(stale);
	for (i = 0; i < 1000; i++) {
		must(open_simply("mock", &ia) == DAT_SUCCESS);
		must(ia != stale);
		close_must(ia);
	}
	must_fail(dat_pz_create(stale, NULL), DAT_INVALID_HANDLE);
}

/* GEN-16: of adapters' handles. */
static void ia_open__a_thousand_times__old_number_is_not_reissued(void **state)
{
	(void)state;
	child_run(numbers);
}

static DAT_IA_HANDLE closing_ia;

static void close_again(void)
{
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
	must_fail(dat_pz_create(closing_ia, NULL), DAT_INVALID_HANDLE);
}

static void close_from_agent(void)
{
	single_conf();
	must(open_simply("mock", &closing_ia) == DAT_SUCCESS);
	mock.in_close = close_again;
	close_must(closing_ia);
	must(strcmp(mock.notes, "LIOCFU") == 0);
}

static void close_gracefully_again(void)
{
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
	must_fail(dat_ia_close(closing_ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
}

static void close_from_graceful(void)
{
	single_conf();
	must(open_simply("mock", &closing_ia) == DAT_SUCCESS);
	mock.in_close = close_gracefully_again;
	must(dat_ia_close(closing_ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIOcFU") == 0);
}

static void ia_close__from_inside_a_graceful_close__invalid_handle(void **state)
{
	(void)state;
	child_run(close_from_graceful);
}

/* IA-CLOSE-27: as far as adapters' handles go. */
static void ia_close__used_from_inside_an_abrupt_close__invalid_handle(void **state)
{
	(void)state;
	child_run(close_from_agent);
}

/* ---- threads and forks ---- */

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
		must_fail(dat_pz_create(ia, NULL), DAT_INVALID_HANDLE);
		must_fail(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
		must(open_simply("mock", &other) == DAT_SUCCESS);
		must(other != ia);
		must(dat_pz_create(other, NULL) == DAT_SUCCESS);
		/* The parent's instance does not count here. */
		close_must(other);
		must(mock.finis == 1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	must(dat_pz_create(ia, NULL) == DAT_SUCCESS);
	close_must(ia);
}

/* GEN-35: as far as adapters' handles go. */
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

		must_fail(open_simply("other", &ia), DAT_PROVIDER_NOT_FOUND);
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

static void fork_while_loading(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	single_conf();
	pthread_barrier_init(&init_reached, NULL, 2);
	pthread_barrier_init(&fork_done, NULL, 2);
	mock.in_init = wait_in_init;
	must(pthread_create(&thread, NULL, open_slowly, NULL) == 0);
	pthread_barrier_wait(&init_reached);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		DAT_IA_HANDLE ia;

		/* The thread that was initialising the library is not here. */
		mock.in_init = NULL;
		must(open_simply("mock", &ia) == DAT_SUCCESS);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_barrier_wait(&fork_done);
	pthread_join(thread, NULL);
	mock.in_init = fork_in_init;
	must_fail(open_simply("other", &(DAT_IA_HANDLE){0}), DAT_PROVIDER_NOT_FOUND);
}

/* GEN-35: a child can open instances whatever the parent's threads were at. */
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

static void fork__from_inside_init__both_go_on(void **state)
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
		"mock", "u1.2",
		"nonthreadsafe") "gone u1.2 nonthreadsafe default /nonexistent.so v \"\" \"\"\n");
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
	foreign_conf("# comment\na bad line\n" LINE("mock", "u1.2", "nonthreadsafe"));
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
static void registry__debug_variable__tells_skipped_lines(void **state)
{
	(void)state;
	child_run(talking);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_close__fini_forgets_to_unregister__the_registry_does_it),
		cmocka_unit_test(registry_remove__instance_open__in_use),
		cmocka_unit_test(ia_open__two_names_of_one_library__one_init_each),
		cmocka_unit_test(ia_close__library_registered_another_name__it_still_opens),
		cmocka_unit_test(ia_open__registration_was_removed__init_again),
		cmocka_unit_test(ia_open__program_initialised_the_library__opens),
		cmocka_unit_test(ia_open__program_lets_the_library_go__instance_keeps_it),
		cmocka_unit_test(ia_open__from_inside_init__no_deadlock),
		cmocka_unit_test(ia_close__bad_arguments__refused),
		cmocka_unit_test(ia_close__refused_by_the_provider__still_open),
		cmocka_unit_test(ia_open__a_thousand_times__old_number_is_not_reissued),
		cmocka_unit_test(ia_close__from_inside_a_graceful_close__invalid_handle),
		cmocka_unit_test(ia_close__used_from_inside_an_abrupt_close__invalid_handle),
		cmocka_unit_test(ia_open__parallel_first_opens__one_init),
		cmocka_unit_test(ia_close__parallel__one_acts),
		cmocka_unit_test(ia_open__parallel_with_closes__no_residue),
		cmocka_unit_test(fork__instance_open__child_is_refused_it_and_opens_another),
		cmocka_unit_test(fork__another_thread_in_init__child_opens),
		cmocka_unit_test(fork__from_inside_init__both_go_on),
		cmocka_unit_test(registry__no_debug_variable__silent),
		cmocka_unit_test(registry__debug_variable__tells_skipped_lines),
	};

	return cmocka_run_group_tests_name("registry life", tests, NULL, NULL);
}
