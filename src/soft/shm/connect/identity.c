// SPDX-License-Identifier: BSD-2-Clause
/*
 * The proof that a peer is of our user (identity.h).
 */
#include "soft/shm/connect/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "core/base/log.h"
#include "core/transport.h"
#include "shared/fd.h"
#include "soft/key.h"
#include "soft/shm/connect/nobody.h"
#include "soft/shm/connect/process.h"
#include "soft/shm/connect/socket.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/state.h"

#define STATUS_SIZE 1024u /* of /proc/PID/status; the ids are among the first lines */

/* Of users or of groups. */
enum { ID_REAL, ID_EFFECTIVE, ID_SAVED, ID_FILE_SYSTEM, ID_COUNT };

struct ids {
	unsigned user[ID_COUNT];
	unsigned group[ID_COUNT];
};

bool shm_process_is_protected(void)
{
	return prctl(PR_GET_DUMPABLE) != 1;
}

/* False: this process has more than one user or group. */
static bool read_own(struct ids *own)
{
	uid_t user[3];
	gid_t group[3];

	if (getresuid(&user[0], &user[1], &user[2]) < 0 ||
	    getresgid(&group[0], &group[1], &group[2]) < 0)
		return false;
	for (unsigned i = 0; i < ID_COUNT; i++) {
		own->user[i] = user[0];
		own->group[i] = group[0];
	}
	return user[0] == user[1] && user[0] == user[2] && group[0] == group[1] &&
	       group[0] == group[2];
}

static bool is_one(const unsigned ids[ID_COUNT])
{
	return ids[ID_EFFECTIVE] == ids[ID_REAL] && ids[ID_SAVED] == ids[ID_REAL] &&
	       ids[ID_FILE_SYSTEM] == ids[ID_REAL];
}

static bool read_line(const char *status, const char *title, unsigned ids_out[ID_COUNT])
{
	/* the kernel writes no line break into the name, which is the first line */
	const char *line = strstr(status, title);

	return line && sscanf(line + strlen(title), "%u %u %u %u", &ids_out[ID_REAL],
			      &ids_out[ID_EFFECTIVE], &ids_out[ID_SAVED],
			      &ids_out[ID_FILE_SYSTEM]) == ID_COUNT;
}

/* Is /proc that of our PID namespace? In another one the number is that of another process. */
static bool has_own_proc(void)
{
	char text[16];
	ssize_t size = readlink("/proc/self", text, sizeof(text) - 1);

	if (size <= 0)
		return false;
	text[size] = '\0';
	return strtol(text, NULL, 10) == getpid();
}

/* False: there is no /proc, or it hides the process. */
static bool read_theirs(pid_t pid, struct ids *theirs)
{
	char text[STATUS_SIZE];
	ssize_t size = -1;
	int fd;

	if (!has_own_proc())
		return false;
	snprintf(text, sizeof(text), "/proc/%d/status", (int)pid);
	fd = opendat_fd_move(open(text, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return false;
	text[size] = '\0';
	return read_line(text, "\nUid:", theirs->user) && read_line(text, "\nGid:", theirs->group);
}

static bool is_sender(const struct ucred *sender, const struct ucred *peer)
{
	return sender->pid == peer->pid && sender->uid == peer->uid;
}

/* Why the peer is not known to be of our user; NULL: it is. */
static const char *find_objection(const struct shm_conn *conn, const struct ucred *sender)
{
	const struct shm_remote *remote = &conn->remote;
	struct ids own, theirs;

	if (remote->pid <= 0)
		return "its process number is unknown here";
	if (remote->peer.uid != geteuid())
		return "it is of another user";
	if (remote->peer.uid == shm_nobody())
		return "all users that are not mapped in this user namespace have that number";
	if (!read_own(&own))
		return "this process has more than one user or group";
	if (sender && !is_sender(sender, &remote->peer))
		return "it did not send the packet, or not as that user";
	if (!remote->process)
		return "its process cannot be watched";
	if (!read_theirs(remote->pid, &theirs))
		return "its status in /proc cannot be read";
	/* checked last: while it lives, no other process has its number */
	if (shm_process_has_ended(remote->process))
		return "it has ended";
	if (memcmp(&own, &theirs, sizeof(own)) != 0)
		return "not all of its users and groups are those of this process";
	return NULL;
}

/* Has the service thread wait for the end of the process, too. */
static void find_process(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;

	if (!remote->process && remote->pid > 0)
		remote->process = shm_process_find(conn->engine, conn->fd, remote->pid);
	/* a child may have copies of its sockets, which nobody serves */
	if (remote->process && atomic_load(&remote->process->has_ended))
		shutdown(conn->fd, SHUT_RDWR);
}

void shm_identify(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;
	socklen_t len = sizeof(remote->peer);

	remote->is_proven = false;
	shm_identity_distrust(conn);
	if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &remote->peer, &len) < 0)
		remote->peer = (struct ucred){.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
	remote->pid = remote->peer.pid; /* 0: in another PID namespace */
	find_process(conn);
}

void shm_identity_prove(struct shm_conn *conn, const struct ucred *sender)
{
	struct shm_remote *remote = &conn->remote;
	const char *objection;

	find_process(conn); /* again, if there was no descriptor for it */
	objection = find_objection(conn, sender);
	if (sender)
		remote->sender = *sender;
	remote->is_proven = !objection;
	if (!objection && shm_process_is_protected())
		objection = "this process is not dumpable";
	remote->is_trusted = !objection;
	if (objection)
		core_log(CORE_LOG_CONN, "process %d is not trusted: %s", (int)remote->pid,
			 objection);
}

bool shm_identity_is_barred(const struct shm_conn *conn)
{
	return conn->engine->settings.peers == CORE_PEERS_USER && !conn->remote.is_proven;
}

void shm_identity_distrust(struct shm_conn *conn)
{
	struct shm_remote *remote = &conn->remote;

	remote->is_trusted = false;
	remote->has_cma = false;
	remote->has_pull = false;
	remote->is_pulling = false;
	if (remote->view)
		soft_view_put(remote->view);
	remote->view = NULL;
}

/* Does the process that has sent the packets of the set-up have one user and one group now? */
static bool is_whole(const struct shm_conn *conn, struct ids *theirs)
{
	const struct shm_remote *remote = &conn->remote;

	return remote->pid > 0 && remote->sender.pid == remote->pid && remote->process &&
	       read_theirs(remote->pid, theirs) && !shm_process_has_ended(remote->process) &&
	       is_one(theirs->user) && is_one(theirs->group) &&
	       theirs->user[ID_REAL] != shm_nobody();
}

void shm_identity_tell(const struct shm_conn *conn, struct transport_peer *peer_out)
{
	const struct shm_remote *remote = &conn->remote;
	struct ids theirs;

	*peer_out = (struct transport_peer){
		.uid = remote->peer.uid,
		.gid = remote->peer.gid,
		.pid = remote->pid > 0 ? (uint32_t)remote->pid : 0,
	};
	if (remote->peer.uid != (uid_t)-1)
		peer_out->flags |= DAT_OPENDAT_PEER_USER;
	if (remote->pid > 0)
		peer_out->flags |= DAT_OPENDAT_PEER_PROCESS;
	if (!is_whole(conn, &theirs))
		return;
	peer_out->flags |= DAT_OPENDAT_PEER_PROVEN;
	peer_out->uid = theirs.user[ID_REAL];
	peer_out->gid = theirs.group[ID_REAL];
}

bool shm_identity_is_same(const struct shm_conn *conn, const struct ucred *sender)
{
	const struct ucred *first = &conn->remote.sender;

	return first->pid > 0 && sender->pid == first->pid && sender->uid == first->uid &&
	       sender->gid == first->gid;
}
