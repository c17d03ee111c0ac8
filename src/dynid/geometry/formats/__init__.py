"""Files of geometric measurements: tables, and what packages of ROS write."""
