// LevelDB's environment over POSIX: files, locks, threads and time for programs that use Env for
// themselves. Esker does not: it goes to the system by its own way.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leveldb/c.h"
#include "leveldb/env.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

Env::Env() = default;
Env::~Env() = default;
EnvWrapper::~EnvWrapper() = default;
SequentialFile::~SequentialFile() = default;
RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
Logger::~Logger() = default;
FileLock::~FileLock() = default;

Status Env::NewAppendableFile(const std::string& fname, WritableFile**) {
  return Status::NotSupported("NewAppendableFile", fname);
}

// Each calls the other, so that environments may define the new name or the old one.
Status Env::RemoveDir(const std::string& dirname) { return DeleteDir(dirname); }
Status Env::DeleteDir(const std::string& dirname) { return RemoveDir(dirname); }
Status Env::RemoveFile(const std::string& fname) { return DeleteFile(fname); }
Status Env::DeleteFile(const std::string& fname) { return RemoveFile(fname); }

void Log(Logger* info_log, const char* format, ...) {
  if (info_log != nullptr) {
    std::va_list arguments;
    va_start(arguments, format);
    info_log->Logv(format, arguments);
    va_end(arguments);
  }
}

Status WriteStringToFile(Env* env, const Slice& data, const std::string& fname) {
  WritableFile* opened = nullptr;
  Status status = env->NewWritableFile(fname, &opened);
  if (!status.ok()) {
    return status;
  }
  std::unique_ptr<WritableFile> file(opened);
  status = file->Append(data);
  if (status.ok()) {
    status = file->Close();
  }
  file.reset();
  if (!status.ok()) {
    env->RemoveFile(fname);
  }
  return status;
}

Status ReadFileToString(Env* env, const std::string& fname, std::string* data) {
  data->clear();
  SequentialFile* opened = nullptr;
  Status status = env->NewSequentialFile(fname, &opened);
  if (!status.ok()) {
    return status;
  }
  const std::unique_ptr<SequentialFile> file(opened);
  std::vector<char> space(8192);
  for (;;) {
    Slice part;
    status = file->Read(space.size(), &part, space.data());
    if (!status.ok() || part.empty()) {
      return status;
    }
    data->append(part.data(), part.size());
  }
}

namespace {

Status SystemError(const std::string& context, int number) {
  if (number == ENOENT) {
    return Status::NotFound(context, std::strerror(number));
  }
  return Status::IOError(context, std::strerror(number));
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Opens a file; a status and -1 if that fails.
Status OpenFile(const std::string& fname, int flags, int* number) {
  do {
    *number = ::open(fname.c_str(), flags | O_CLOEXEC, 0644);
  } while (*number < 0 && errno == EINTR);
  return *number < 0 ? SystemError(fname, errno) : Status::OK();
}

class PosixSequentialFile : public SequentialFile {
 public:
  PosixSequentialFile(std::string fname, int number) : fname_(std::move(fname)), file_(number) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    for (;;) {
      const ssize_t got = ::read(file_.get(), scratch, n);
      if (got >= 0) {
        *result = Slice(scratch, static_cast<size_t>(got));
        return Status::OK();
      }
      if (errno != EINTR) {
        return SystemError(fname_, errno);
      }
    }
  }

  Status Skip(uint64_t n) override {
    const bool moved = ::lseek(file_.get(), static_cast<off_t>(n), SEEK_CUR) >= 0;
    return moved ? Status::OK() : SystemError(fname_, errno);
  }

 private:
  const std::string fname_;
  const Descriptor file_;
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string fname, int number) : fname_(std::move(fname)), file_(number) {}

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    ssize_t got;
    do {
      got = ::pread(file_.get(), scratch, n, static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    *result = Slice(scratch, got < 0 ? 0 : static_cast<size_t>(got));
    return got < 0 ? SystemError(fname_, errno) : Status::OK();
  }

 private:
  const std::string fname_;
  const Descriptor file_;
};

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string fname, int number) : fname_(std::move(fname)), file_(number) {
    waiting_.reserve(kBuffer);
  }
  ~PosixWritableFile() override { PosixWritableFile::Close(); }

  Status Append(const Slice& data) override {
    waiting_.append(data.data(), data.size());
    return waiting_.size() < kBuffer ? Status::OK() : Flush();
  }

  Status Flush() override {
    const char* data = waiting_.data();
    size_t left = waiting_.size();
    while (left > 0) {
      const ssize_t done = ::write(file_.get(), data, left);
      if (done < 0) {
        if (errno == EINTR) {
          continue;
        }
        return SystemError(fname_, errno);
      }
      data += done;
      left -= static_cast<size_t>(done);
    }
    waiting_.clear();
    return Status::OK();
  }

  Status Sync() override {
    const Status status = Flush();
    if (status.ok() && ::fdatasync(file_.get()) != 0) {
      return SystemError(fname_, errno);
    }
    return status;
  }

  Status Close() override {
    if (file_.get() < 0) {
      return Status::OK();
    }
    Status status = Flush();
    if (::close(file_.Release()) != 0 && status.ok()) {
      status = SystemError(fname_, errno);
    }
    return status;
  }

 private:
  static constexpr size_t kBuffer = 1 << 16;

  const std::string fname_;
  Descriptor file_;
  std::string waiting_;
};

class PosixLogger : public Logger {
 public:
  explicit PosixLogger(std::FILE* file) : file_(file) {}
  ~PosixLogger() override { std::fclose(file_); }

  void Logv(const char* format, std::va_list arguments) override {
    struct timeval now;
    ::gettimeofday(&now, nullptr);
    struct tm parts;
    ::localtime_r(&now.tv_sec, &parts);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::fprintf(file_, "%04d/%02d/%02d-%02d:%02d:%02d.%06d ", parts.tm_year + 1900,
                 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                 static_cast<int>(now.tv_usec));
    std::vfprintf(file_, format, arguments);
    std::fputc('\n', file_);
    std::fflush(file_);
  }

 private:
  std::mutex mutex_;
  std::FILE* const file_;
};

class PosixFileLock : public FileLock {
 public:
  PosixFileLock(std::string fname, int number) : fname_(std::move(fname)), file_(number) {}
  const std::string& fname() const { return fname_; }
  int file() const { return file_.get(); }

 private:
  const std::string fname_;
  const Descriptor file_;
};

// Takes or gives back the lock of a whole file.
int SetLock(int file, bool lock) {
  struct flock wish = {};
  wish.l_type = static_cast<short>(lock ? F_WRLCK : F_UNLCK);
  wish.l_whence = SEEK_SET;
  return ::fcntl(file, F_SETLK, &wish);
}

class PosixEnv : public Env {
 public:
  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override {
    return Make<PosixSequentialFile>(fname, O_RDONLY, result);
  }
  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override {
    return Make<PosixRandomAccessFile>(fname, O_RDONLY, result);
  }
  Status NewWritableFile(const std::string& fname, WritableFile** result) override {
    return Make<PosixWritableFile>(fname, O_WRONLY | O_CREAT | O_TRUNC, result);
  }
  Status NewAppendableFile(const std::string& fname, WritableFile** result) override {
    return Make<PosixWritableFile>(fname, O_WRONLY | O_CREAT | O_APPEND, result);
  }

  bool FileExists(const std::string& fname) override { return ::access(fname.c_str(), F_OK) == 0; }

  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    result->clear();
    DIR* opened = ::opendir(dir.c_str());
    if (opened == nullptr) {
      return SystemError(dir, errno);
    }
    while (const struct dirent* entry = ::readdir(opened)) {
      result->emplace_back(entry->d_name);
    }
    ::closedir(opened);
    return Status::OK();
  }

  Status RemoveFile(const std::string& fname) override {
    return ::unlink(fname.c_str()) == 0 ? Status::OK() : SystemError(fname, errno);
  }
  Status CreateDir(const std::string& dirname) override {
    return ::mkdir(dirname.c_str(), 0755) == 0 ? Status::OK() : SystemError(dirname, errno);
  }
  Status RemoveDir(const std::string& dirname) override {
    return ::rmdir(dirname.c_str()) == 0 ? Status::OK() : SystemError(dirname, errno);
  }
  Status GetFileSize(const std::string& fname, uint64_t* size) override {
    struct stat found;
    if (::stat(fname.c_str(), &found) != 0) {
      *size = 0;
      return SystemError(fname, errno);
    }
    *size = static_cast<uint64_t>(found.st_size);
    return Status::OK();
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    return std::rename(from.c_str(), to.c_str()) == 0 ? Status::OK() : SystemError(from, errno);
  }

  Status LockFile(const std::string& fname, FileLock** lock) override {
    *lock = nullptr;
    int number;
    {
      // The system's locks are the process's, so those of this process are kept in a list.
      const std::lock_guard<std::mutex> guard(mutex_);
      if (!locked_.insert(fname).second) {
        return Status::IOError("lock " + fname, "already held by process");
      }
    }
    Status status = OpenFile(fname, O_RDWR | O_CREAT, &number);
    if (status.ok() && SetLock(number, true) != 0) {
      status = SystemError("lock " + fname, errno);
      ::close(number);
    }
    if (!status.ok()) {
      Forget(fname);
      return status;
    }
    *lock = new PosixFileLock(fname, number);
    return Status::OK();
  }

  Status UnlockFile(FileLock* lock) override {
    const std::unique_ptr<PosixFileLock> held(static_cast<PosixFileLock*>(lock));
    Status status;
    if (SetLock(held->file(), false) != 0) {
      status = SystemError("unlock " + held->fname(), errno);
    }
    Forget(held->fname());
    return status;
  }

  void Schedule(void (*function)(void*), void* argument) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!worker_started_) {
      worker_started_ = true;
      std::thread([this] { Work(); }).detach();
    }
    queue_.emplace_back(function, argument);
    queued_.notify_one();
  }

  void StartThread(void (*function)(void*), void* argument) override {
    std::thread(function, argument).detach();
  }

  Status GetTestDirectory(std::string* path) override {
    char* directory = leveldb_env_get_test_directory(nullptr);
    if (directory == nullptr) {
      return Status::IOError("the directory for tests cannot be made");
    }
    path->assign(directory);
    leveldb_free(directory);
    return Status::OK();
  }

  Status NewLogger(const std::string& fname, Logger** result) override {
    std::FILE* file = std::fopen(fname.c_str(), "ae");
    *result = file != nullptr ? new PosixLogger(file) : nullptr;
    return file != nullptr ? Status::OK() : SystemError(fname, errno);
  }

  uint64_t NowMicros() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }

  void SleepForMicroseconds(int micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }

 private:
  template <typename Made, typename Base>
  static Status Make(const std::string& fname, int flags, Base** result) {
    int number;
    const Status status = OpenFile(fname, flags, &number);
    *result = status.ok() ? new Made(fname, number) : nullptr;
    return status;
  }

  void Forget(const std::string& fname) {
    const std::lock_guard<std::mutex> guard(mutex_);
    locked_.erase(fname);
  }

  [[noreturn]] void Work() {
    for (;;) {
      std::unique_lock<std::mutex> guard(mutex_);
      queued_.wait(guard, [this] { return !queue_.empty(); });
      const auto [function, argument] = queue_.front();
      queue_.pop_front();
      guard.unlock();
      function(argument);
    }
  }

  std::mutex mutex_;
  std::condition_variable queued_;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
  bool worker_started_ = false;
  std::set<std::string> locked_;
};

}  // namespace

Env* Env::Default() {
  // Never destroyed: its thread and its users may outlive everything else.
  static Env* const env = new PosixEnv;
  return env;
}

}  // namespace leveldb
