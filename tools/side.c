// SPDX-License-Identifier: BSD-2-Clause
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define TIMEOUT_MAX_S 4000u

int tool_side_option(int letter, const char *value, struct tool_side *side)
{
	uint64_t seconds;

	switch (letter) {
	case 's':
		side->is_server = true;
		return 0;
	case 'c':
		side->is_server = false;
		return 0;
	case 'a':
		side->adapter = value;
		return 0;
	case 'Q':
		return tool_parse_number(value, &side->qualifier) == 0 ? 0 : -1;
	case '1':
		side->is_once = true;
		return 0;
	case 'D':
		side->is_daemon = true;
		return 0;
	case 'F':
		side->pid_file = value;
		return 0;
	case 't':
		if (tool_parse_number(value, &seconds) != 0 || seconds == 0 ||
		    seconds > TIMEOUT_MAX_S)
			return -1;
		side->timeout_ms = (uint32_t)seconds * 1000;
		side->has_timeout = true;
		return 0;
	default:
		return 1;
	}
}

int tool_side_host(const char *host, void *context)
{
	struct tool_side *side = context;

	side->host = host;
	return 0;
}

int tool_side_check(const struct tool_side *side)
{
	if (side->is_server && side->host) {
		tool_complain("%s: a server has no argument", side->host);
		return -1;
	}
	if (!side->is_server && (side->is_daemon || side->pid_file)) {
		tool_complain("--daemon and --pid-file are for a server");
		return -1;
	}
	if (!side->is_server && side->qualifier == 0) {
		tool_complain("a client needs --qual, the number that the server prints");
		return -1;
	}
	return 0;
}

/* The process that was started: ends when the other one listens or has failed. */
static void wait_for_daemon(int end, pid_t daemon)
{
	int status = 0;
	char byte;

	if (read(end, &byte, 1) == 1)
		_exit(TOOL_EXIT_OK);
	waitpid(daemon, &status, 0);
	_exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : TOOL_EXIT_FAILED);
}

int tool_side_detach(struct tool_side *side)
{
	int ends[2];
	pid_t pid;

	if (!side->is_daemon)
		return 0;
	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		tool_complain("--daemon: %s", strerror(errno));
		return -EIO;
	}
	if (pid > 0) {
		close(ends[1]);
		wait_for_daemon(ends[0], pid);
	}
	close(ends[0]);
	setsid();
	side->starter = ends[1];
	return 0;
}

static int write_pid_file(const char *path)
{
	FILE *file = fopen(path, "we");
	bool is_bad;

	if (!file) {
		tool_complain("--pid-file %s: %s", path, strerror(errno));
		return -EIO;
	}
	fprintf(file, "%d\n", (int)getpid());
	is_bad = ferror(file);
	if (fclose(file) == 0 && !is_bad)
		return 0;
	tool_complain("--pid-file %s: cannot write", path);
	return -EIO;
}

/* Closes what the caller of the tool may wait for, and lets the process that was started end. */
static void leave_terminal(const struct tool_side *side)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	close(null);
	(void)!write(side->starter, "", 1);
	close(side->starter);
}

int tool_side_listen(const struct tool_side *side, struct session *session, DAT_PSP_HANDLE *psp_out)
{
	DAT_CONN_QUAL qualifier = side->qualifier;
	char address[64];
	int rc = session_listen(session, &qualifier, psp_out);

	if (rc == 0 && side->pid_file)
		rc = write_pid_file(side->pid_file);
	if (rc != 0)
		return rc;
	printf("%s: listening adapter=%s address=%s qualifier=%" PRIu64 "\n", tool_name,
	       side->adapter,
	       tool_address_text((struct sockaddr *)&session->address, address, sizeof(address)),
	       qualifier);
	fflush(stdout);
	if (side->starter >= 0)
		leave_terminal(side);
	return 0;
}

void tool_side_end(const struct tool_side *side)
{
	if (side->pid_file)
		unlink(side->pid_file);
}

int tool_side_accept(const struct tool_side *side, struct session *session, uint64_t served,
		     DAT_CR_HANDLE *request_out, struct session_private *hello_out)
{
	int rc = session_request_wait(session, side->has_timeout ? side->timeout_ms : 0,
				      request_out, hello_out);

	if (rc != -ETIMEDOUT)
		return rc;
	if (served == 0)
		tool_complain("no client in %u s", side->timeout_ms / 1000);
	return -ENODATA;
}
