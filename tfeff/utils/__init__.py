"""What has nothing to do with encoders: arguments, files, processes, progress."""
