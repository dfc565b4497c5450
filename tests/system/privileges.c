// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with raised privileges ignores the environment. The test makes a copy of itself with
 * the set-user-ID or the set-group-ID bit, has another user or group run it, and the copy looks
 * which registry file and which setting it gets.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dat/udat.h>

#include "../lib/must.h"

#define NOBODY 65534u
#define SECONDS_MAX 60
#define EXIT_SKIP 77 /* this system ignores the bit, or has no private mounts */

/* --- the copy --- */

static DAT_RETURN open_adapter(const char *name, DAT_IA_HANDLE *ia_out)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &evd, ia_out);
}

/* Both files say tcp, the environment says shm. */
static void look_at_setting(DAT_IA_HANDLE ia, const char *expected)
{
	DAT_IA_ATTR attr;

	must(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) == DAT_SUCCESS);
	must(attr.num_transport_attr == 1);
	must(!strcmp(attr.transport_attr[0].name, "transport"));
	must(!strcmp(attr.transport_attr[0].value, expected));
}

/* Exactly that adapter is listed. */
static void look_at_list(const char *name)
{
	DAT_PROVIDER_INFO info[8], *list[8];
	DAT_COUNT count = 0;

	for (int i = 0; i < 8; i++)
		list[i] = &info[i];
	must(dat_registry_list_providers(8, &count, list) == DAT_SUCCESS);
	must(count == 1);
	must(!strcmp(info[0].ia_name, name));
}

static void look(bool is_raised)
{
	const char *mine = is_raised ? "system" : "chosen";
	const char *other = is_raised ? "chosen" : "system";
	DAT_IA_HANDLE ia;

	if ((getauxval(AT_SECURE) != 0) != is_raised)
		_exit(EXIT_SKIP);
	must(getenv("DAT_OVERRIDE") && getenv("DAT_TRANSPORT") && getenv("DAT_DBG_TYPE"));
	look_at_list(mine);
	must(open_adapter(other, &ia) ==
	     (DAT_CLASS_ERROR | (DAT_RETURN)DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED));
	must(open_adapter(mine, &ia) == DAT_SUCCESS);
	look_at_setting(ia, is_raised ? "tcp" : "shm");
	must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
}

/* --- the process that becomes the copy --- */

struct run {
	mode_t mode; /* of the copy, which belongs to root */
	uid_t uid;   /* who runs it */
	gid_t gid;
	bool is_raised;
};

static char folder[] = "/tmp/opendat-test-XXXXXX";
static char program[sizeof(folder) + 8], chosen_file[sizeof(folder) + 12];

static void write_conf(const char *path, const char *name)
{
	FILE *file = fopen(path, "w");

	must(file != NULL);
	must(fprintf(file, "%s u1.2 nonthreadsafe default libdat-soft.so.1 opendat.1 ", name) > 0);
	must(fprintf(file, "\"lo transport=tcp\" \"\"\n") > 0);
	must(fclose(file) == 0);
	must(chmod(path, 0644) == 0);
}

/* The first default file, in a private mount that ends with the process. */
static void make_default_file(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", REGISTRY_SYSCONFDIR, "tmpfs", 0, NULL))
		_exit(EXIT_SKIP);
	write_conf(REGISTRY_SYSCONFDIR "/dat.conf", "system");
}

static void become_copy(const struct run *run, int log_fd)
{
	char *arguments[] = {program, run->is_raised ? "raised" : "plain", NULL};

	alarm(SECONDS_MAX);
	must(dup2(log_fd, STDERR_FILENO) >= 0);
	make_default_file();
	must(setenv("DAT_OVERRIDE", chosen_file, 1) == 0);
	must(setenv("DAT_TRANSPORT", "shm", 1) == 0);
	must(setenv("DAT_DBG_TYPE", "63", 1) == 0);
	must(setgroups(0, NULL) == 0);
	must(setgid(run->gid) == 0);
	must(setuid(run->uid) == 0);
	execv(program, arguments);
	must(errno == ENOEXEC); /* an emulator cannot execute a program of its machine */
	_exit(EXIT_SKIP);
}

/* --- the test --- */

static int copy_self(void)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	char bytes[65536];
	ssize_t count;

	assert_true(from >= 0 && to >= 0);
	while ((count = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)count), count);
	assert_int_equal(count, 0);
	close(from);
	return close(to);
}

static int prepare(void **state)
{
	(void)state;
	if (geteuid())
		return 0;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(program, sizeof(program), "%s/copy", folder);
	snprintf(chosen_file, sizeof(chosen_file), "%s/dat.conf", folder);
	write_conf(chosen_file, "chosen");
	return copy_self();
}

static int clean_up(void **state)
{
	(void)state;
	if (geteuid())
		return 0;
	return unlink(program) | unlink(chosen_file) | rmdir(folder);
}

/* Says why the bits cannot be tested here, or returns. */
static void need_bits(void)
{
	struct statvfs info;

	if (geteuid()) {
		print_message("needs root, to make a set-user-ID program\n");
		skip();
	}
	assert_int_equal(statvfs(folder, &info), 0);
	if (info.f_flag & ST_NOSUID) {
		print_message("/tmp is mounted with nosuid\n");
		skip();
	}
}

/* Runs the copy; the size of its log. */
static off_t run_copy(const struct run *run)
{
	int log_fd = memfd_create("log", MFD_CLOEXEC);
	struct stat info;
	char text[4096];
	int status;
	pid_t child;

	assert_true(log_fd >= 0);
	assert_int_equal(chmod(program, run->mode), 0);
	fflush(NULL);
	child = fork();
	if (child == 0)
		become_copy(run, log_fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
		print_message("this system ignores the bit, or has no private mounts\n");
		close(log_fd);
		skip();
	}
	assert_int_equal(fstat(log_fd, &info), 0);
	if (status || (run->is_raised && info.st_size)) {
		ssize_t count = pread(log_fd, text, sizeof(text), 0);

		print_error("%.*s", (int)(count > 0 ? count : 0), text);
	}
	close(log_fd);
	assert_int_equal(status, 0);
	return info.st_size;
}

/* CONF-03: what the other tests compare with */
static void program__without_a_bit__environment_counts(void **state)
{
	const struct run run = {.mode = 0755};

	(void)state;
	need_bits();
	assert_true(run_copy(&run) > 0);
}

/* CONF-01 CONF-05 */
static void program__set_user_id__environment_ignored(void **state)
{
	const struct run run = {.mode = 04755, .uid = NOBODY, .gid = NOBODY, .is_raised = true};

	(void)state;
	need_bits();
	assert_int_equal(run_copy(&run), 0);
}

/* CONF-01 CONF-05 */
static void program__set_group_id__environment_ignored(void **state)
{
	const struct run run = {.mode = 02755, .gid = NOBODY, .is_raised = true};

	(void)state;
	need_bits();
	assert_int_equal(run_copy(&run), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program__without_a_bit__environment_counts),
		cmocka_unit_test(program__set_user_id__environment_ignored),
		cmocka_unit_test(program__set_group_id__environment_ignored),
	};

	if (argc == 2) {
		look(!strcmp(argv[1], "raised"));
		_exit(0);
	}
	return cmocka_run_group_tests_name("privileges", tests, prepare, clean_up);
}
